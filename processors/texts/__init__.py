"""What texts say: words, numbers, units, times; and patterns in them."""
