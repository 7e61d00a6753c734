"""What evaluators share: the parts of a run that they look at, and how they report."""
