"""Reference pages generated from the code: `python -m docs.generate`."""
