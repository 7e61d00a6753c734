"""Where graded traces go: one destination a file."""
