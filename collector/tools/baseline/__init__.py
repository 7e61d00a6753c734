"""The scores of a release, pinned for later comparison."""
