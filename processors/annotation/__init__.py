"""The forms in which a verdict leaves: span event, log record, span, annotation, line of a runs file."""
