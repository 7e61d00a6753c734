"""OTLP spans as they were received: bytes, decoded views over them, and their tree."""
