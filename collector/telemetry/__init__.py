"""The service's own metrics, health and logs."""
