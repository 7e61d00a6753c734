"""Files that people write: YAML with places, shapes, and what is wrong in them."""
