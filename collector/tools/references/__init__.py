"""Reference pages made from the code."""
