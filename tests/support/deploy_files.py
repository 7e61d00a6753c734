"""Reading the files under `deploy/`, and asking the service what it thinks of a configuration."""

import os
from collections.abc import Mapping
from pathlib import Path

import yaml

from collector.cli import run_command
from collector.configuration import ServiceConfig, load_configuration
from processors.model import JsonObject, JsonValue


def read_yaml(path: Path) -> JsonObject:
    """The one document of a YAML file, a mapping."""
    content = yaml.safe_load(path.read_text())
    assert isinstance(content, dict), path
    return content


def read_manifests(text: str) -> list[JsonObject]:
    """The documents of a YAML stream, empty ones left out."""
    return [document for document in yaml.safe_load_all(text) if document]


def section(config: JsonObject, *path: str) -> JsonObject:
    """The mapping at `path`; an empty one where there is none."""
    value: JsonValue = config
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def placed(value: JsonValue, places: Mapping[str, str]) -> JsonValue:
    """`value` with the texts of an example that name a place replaced by where that is here."""
    if isinstance(value, dict):
        return {key: placed(member, places) for key, member in value.items()}
    if isinstance(value, list):
        return [placed(member, places) for member in value]
    return places.get(value, value) if isinstance(value, str) else value


def validated(path: Path) -> ServiceConfig:
    """The configuration in the file `path`, which `tracegrade validate` has nothing against."""
    assert 0 == run_command(["validate", "--config", str(path)]), path
    return load_configuration(path, os.environ)


def port(address: str) -> int:
    """The port of `host:port` or of a URL that names one."""
    return int(address.rpartition(":")[2].rstrip("/"))


def host(address: str) -> str:
    """The host of `host:port` or of a URL that names a port."""
    return address.removeprefix("http://").rpartition(":")[0]
