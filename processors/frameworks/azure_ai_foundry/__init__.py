"""Azure AI Foundry: what rewrites its runs; its spans are read by the reader of the GenAI conventions."""
