"""genkit."""
