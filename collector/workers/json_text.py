"""JSON values as text for workers. Total: what orjson cannot write is escaped."""

import json

import orjson

from processors.model.json_value import JsonValue


def json_text(value: JsonValue) -> bytes:
    """`value` as JSON."""
    try:
        return orjson.dumps(value)
    except TypeError:  # integers beyond 64 bits, lone surrogates
        return json.dumps(value, separators=(",", ":")).encode()
