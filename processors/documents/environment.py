"""References to environment variables in configuration and criteria: `${env:NAME}`.

As in the OpenTelemetry Collector: `${env:NAME}` is the variable, `${env:NAME:-text}` has a default for
a variable that is not set (one that is set but empty is empty). A variable that is not set and has no
default is a mistake. The variables are an argument: nothing here reads the process environment.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Dollars = Literal["service", "criteria"]
"""Which dollar signs mean something beside `${env:...}`.

In a service file `$$` is a dollar sign and any other `${` is refused. In a criteria file, where tool
arguments and patterns are full of dollar signs, only `$${` is an escape (for `${`).
"""

_REFERENCE = re.compile(r"\$\$\{?|\$\{([^{}]*)\}?")
_VARIABLE = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Expansion:
    """A text with its references replaced.

    `is_reference`: the whole text was one reference, so its value may be of another type than text.
    `shown`: the text with references as `${env:NAME}`, without values and defaults: fit to be printed;
    None when there was no reference.
    """

    text: str
    is_reference: bool = False
    shown: str | None = None


def expand(text: str, environment: Mapping[str, str], dollars: Dollars) -> Expansion:
    """Replace every reference in `text`.

    Raises:
        ValueError: a variable is not set and has no default, its value is not UTF-8, or the reference
            cannot be read. The message names the variable, never a value.
    """
    if "$" not in text:
        return Expansion(text)
    expanded: list[str] = []
    shown: list[str] = []
    position = references = 0
    for match in _REFERENCE.finditer(text):
        whole = match.group()
        plain = text[position : match.start()]
        position = match.end()
        if whole.startswith("$$"):
            value = label = _escaped(whole, dollars)
        elif dollars == "criteria" and not whole.startswith("${env:"):
            value = label = whole
        else:
            name, value = _value(whole, match.group(1), environment)
            label = f"${{env:{name}}}"
            references += 1
        expanded += plain, value
        shown += plain, label
    rest = text[position:]
    return Expansion(
        "".join(expanded) + rest,
        is_reference=references == 1 and not rest and not any(expanded[:-1]),
        shown="".join(shown) + rest if references else None,
    )


def _escaped(found: str, dollars: Dollars) -> str:
    if dollars == "criteria":
        return "${" if found == "$${" else found
    return found[1:]


def _value(found: str, inner: str, environment: Mapping[str, str]) -> tuple[str, str]:
    reference = _VARIABLE.match(inner)
    if reference is None or not found.endswith("}"):
        raise ValueError('cannot read a reference: expected "${env:NAME}" or "${env:NAME:-default}"')
    name, default = reference.group(1, 2)
    value = environment.get(name, default)
    if value is None:
        raise ValueError(
            f'environment variable "{name}" is not set; set it, or write "${{env:{name}:-default}}"'
        )
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f'environment variable "{name}" holds bytes that are not UTF-8') from None
    return name, value
