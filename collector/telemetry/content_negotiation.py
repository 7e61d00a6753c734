"""What a request's headers say about the form of the answer it wants."""


def prefers_openmetrics(accept: str) -> bool:
    """Whether an Accept header prefers OpenMetrics to the text format."""
    wanted = _quality(accept, "application/openmetrics-text")
    return wanted > 0 and wanted >= max(_quality(accept, "text/plain"), _quality(accept, "text/*"))


def gzip_accepted(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding header allows gzip."""
    return _quality(accept_encoding, "gzip") > 0


def _quality(header: str, token: str) -> float:
    """The highest weight that a header of alternatives gives `token`; 0 where it is not named."""
    best = 0.0
    for alternative in header.lower().split(","):
        name, *parameters = (part.strip() for part in alternative.split(";"))
        if name == token:
            best = max(best, _weight(parameters))
    return best


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return float(parameter[2:])
            except ValueError:
                return 0.0
    return 1.0
