"""Recording and alert rules as values, and as the text of a Prometheus rule file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import dedent

from collector.tools.alerting.series_selector import quoted

_EXPRESSION_INDENT = " " * 10
_SAFE_IN_YAML = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:()[]<>=.,+-*/ ")


@dataclass(frozen=True, slots=True)
class RecordingRule:
    """A series that Prometheus computes at every evaluation."""

    record: str
    expression: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRule:
    """A condition that people are told of once it has held for the duration `hold` (empty: at once)."""

    alert: str
    expression: str
    hold: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str]


Rule = RecordingRule | AlertRule


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """Rules that are evaluated one after the other, each seeing what those before it recorded."""

    name: str
    comment: str
    rules: Sequence[Rule]


def promql(text: str) -> str:
    """A PromQL expression out of an indented literal: without common indentation and empty lines."""
    return "\n".join(line.rstrip() for line in dedent(text).splitlines() if line.strip())


def any_of(expressions: Sequence[str], on: str = "") -> str:
    """The series of each of `expressions`; of those that agree in the labels `on` (all), the first one."""
    operator = f"\nor on ({on})\n" if on else "\nor\n"
    return operator.join(f"  {expression}" for expression in expressions)


def rule_file_text(groups: Sequence[RuleGroup], heading: Sequence[str]) -> str:
    """The YAML text of a rule file that begins with the comment lines `heading`."""
    lines = [f"# {line}" for line in heading]
    lines.append("groups:")
    for group in groups:
        lines += [f"  # {line}" for line in group.comment.splitlines()]
        lines += [f"  - name: {group.name}", "    rules:"]
        for rule in group.rules:
            lines += _rule_lines(rule)
        lines.append("")
    return "\n".join(lines)


def _rule_lines(rule: Rule) -> list[str]:
    if isinstance(rule, RecordingRule):
        lines = [f"      - record: {rule.record}", *_expression_lines(rule.expression)]
        return lines + _mapping_lines("labels", rule.labels)
    lines = [f"      - alert: {rule.alert}", *_expression_lines(rule.expression)]
    if rule.hold:
        lines.append(f"        for: {rule.hold}")
    return lines + _mapping_lines("labels", rule.labels) + _mapping_lines("annotations", rule.annotations)


def _expression_lines(expression: str) -> list[str]:
    expression = expression if "\n" in expression else expression.strip()
    if "\n" not in expression and ": " not in expression and _SAFE_IN_YAML.issuperset(expression):
        return [f"        expr: {expression}"]
    return ["        expr: |2", *(_EXPRESSION_INDENT + line for line in expression.splitlines())]


def _mapping_lines(key: str, values: Mapping[str, str]) -> list[str]:
    if not values:
        return []
    return [f"        {key}:", *(f"          {name}: {quoted(value)}" for name, value in values.items())]
