"""The JSON values that travel through evaluation: arguments, results, details."""

from typing import TypeAlias

JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"
"""What a JSON document can hold; integers stay exact, objects keep the order of their keys."""

JsonObject: TypeAlias = dict[str, JsonValue]
