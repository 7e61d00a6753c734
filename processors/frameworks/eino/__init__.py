"""eino."""
