"""What agent frameworks write into spans: a folder for each family, and the shapes that several share."""
