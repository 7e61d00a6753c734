"""Lists and objects that telemetry spells out in flattened attributes, such as `llm.tools.0.name`."""

from processors.model.json_value import JsonValue
from processors.model.values import MAX_DEPTH, json_value
from processors.spans.attributes import Attributes


def flattened_list(attributes: Attributes, prefix: str) -> list[JsonValue]:
    """The list that flattened attributes such as `<prefix>0.message.role` spell out, in order of index.

    Positions that are left out in the telemetry are left out here too, and so is what lies deeper than
    values are taken.
    """
    listed = flattened_value(attributes, prefix)
    return listed if isinstance(listed, list) else []


def flattened_value(attributes: Attributes, prefix: str) -> JsonValue:
    """The list or object that attributes whose keys begin with `prefix` spell out, `{}` where none does."""
    root: dict[str, JsonValue] = {}
    length = len(prefix)
    for key in attributes:
        if not key.startswith(prefix):
            continue
        node = root
        *path, last = key[length:].split(".", MAX_DEPTH)
        if len(path) == MAX_DEPTH:
            continue
        for step in path:
            child = node.get(step)
            if not isinstance(child, dict):
                child = {}
                node[step] = child
            node = child
        node[last] = json_value(attributes.get(key))
    return _as_lists(root)


def _as_lists(node: JsonValue) -> JsonValue:
    if not isinstance(node, dict):
        return node
    children = {key: _as_lists(child) for key, child in node.items()}
    if children and all(key.isdecimal() and key.isascii() for key in children):
        return [children[key] for key in sorted(children, key=lambda key: (len(key), key))]
    return children
