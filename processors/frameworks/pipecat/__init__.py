"""pipecat."""
