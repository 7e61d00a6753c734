"""Regular expressions in linear time, their translation, and the distance of two texts."""
