"""The service file: read, checked, printed, and the JSON schemas of what people write."""

from collector.configuration.json_schemas import schema_documents
from collector.configuration.service_file import (
    PROMETHEUS,
    ServiceConfig,
    load_configuration,
    parse_configuration,
    print_configuration,
)

__all__ = [
    "PROMETHEUS", "ServiceConfig", "load_configuration", "parse_configuration", "print_configuration",
    "schema_documents",
]  # fmt: skip
