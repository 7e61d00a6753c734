"""The service file and the criteria files: read, checked, told about, printed."""
