"""Shapes that several conventions write: values, messages, envelopes, names."""
