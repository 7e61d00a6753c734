"""What telemetry captured: values, messages, conversations, with what is known of each."""
