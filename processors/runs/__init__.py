"""From spans, as the dialects read them, to runs: scopes, calls, order, turns."""
