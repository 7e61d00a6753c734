"""livekit."""
