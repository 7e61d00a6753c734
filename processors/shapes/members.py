"""Members of decoded JSON by their path, whatever is in the way; and the error of a call that failed."""

from processors.model import JsonObject, JsonValue, ToolError


def value_at(value: JsonValue, *path: str | int) -> JsonValue:
    """What is at `path` in a value, by names of members and positions in lists; None where nothing is."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and step < len(value) else None
    return value


def text_at(value: JsonValue, *path: str | int) -> str:
    """The text at `path`; anything else is the empty one."""
    result = value_at(value, *path)
    return result if isinstance(result, str) else ""


def object_at(value: JsonValue, *path: str | int) -> JsonObject:
    """The object at `path`; anything else is an empty one."""
    result = value_at(value, *path)
    return result if isinstance(result, dict) else {}


def list_at(value: JsonValue, *path: str | int) -> list[JsonValue]:
    """The list at `path`; anything else is an empty one."""
    result = value_at(value, *path)
    return result if isinstance(result, list) else []


def objects_at(value: JsonValue, *path: str | int) -> list[JsonObject]:
    """The objects in the list at `path`."""
    return [item for item in list_at(value, *path) if isinstance(item, dict)]


def failure(message: str | None = "") -> ToolError:
    """The error of a call that failed, of which there is at most a message."""
    return ToolError(type="", message=message or "")
