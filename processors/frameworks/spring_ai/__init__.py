"""spring_ai."""
