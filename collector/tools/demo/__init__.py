"""What `tracegrade demo` runs."""
