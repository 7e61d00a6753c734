"""Lists and mappings that are made when somebody first looks at them."""
