"""What telemetry conventions share: shapes that several of them write, and names."""
