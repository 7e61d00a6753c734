"""The service file and the criteria files: read, checked, told about, printed."""

from collector.configuration.criteria_files import (
    UNCOVERED_AGENTS,
    CriteriaFollower,
    CriteriaStore,
    CriteriaTexts,
    load_criteria,
)
from collector.configuration.criteria_tests import run_criteria_tests
from collector.configuration.files import default_file, find_files
from collector.configuration.json_schemas import schema_documents
from collector.configuration.service_file import (
    PROMETHEUS,
    ServiceConfig,
    load_configuration,
    parse_configuration,
    print_configuration,
)

__all__ = [
    "PROMETHEUS", "UNCOVERED_AGENTS", "CriteriaFollower", "CriteriaStore", "CriteriaTexts", "ServiceConfig",
    "default_file", "find_files", "load_configuration", "load_criteria", "parse_configuration",
    "print_configuration",
    "run_criteria_tests", "schema_documents",
]  # fmt: skip
