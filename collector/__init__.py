"""The service around the processors: sockets, time, disk and processes."""
