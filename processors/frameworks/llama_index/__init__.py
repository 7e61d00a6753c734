"""LlamaIndex: what rewrites its runs; its spans are read by the reader of OpenInference."""
