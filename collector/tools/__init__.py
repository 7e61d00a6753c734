"""What stands beside the data path."""
