"""vercel_ai_sdk."""
