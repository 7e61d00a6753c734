"""microsoft_extensions_ai."""
