"""What a PromQL expression reads: its selectors, the functions around them, the labels that it names."""

import datetime
from dataclasses import dataclass, field

import promql_parser
from promql_parser import (
    AggregateExpr,
    BinaryExpr,
    Call,
    Expr,
    MatchOp,
    MatrixSelector,
    ParenExpr,
    SubqueryExpr,
    UnaryExpr,
    VectorSelector,
)

AVERAGING = frozenset({"rate", "irate", "increase"})
"""The functions that make sense of a counter, whatever its resets."""


@dataclass(frozen=True)
class Selector:
    """One selector of an expression.

    Attributes:
        metrics: The metrics that it selects; more than one if it matches `__name__` against alternatives.
        matchers: (label, operator, value) of each matcher, the name of the metric left out.
        window: Its range, if it has one.
        function: The innermost function around it, empty if there is none.
    """

    metrics: tuple[str, ...]
    matchers: tuple[tuple[str, str, str], ...]
    window: datetime.timedelta | None
    function: str


@dataclass
class Reading:
    """Everything that an expression reads."""

    selectors: list[Selector] = field(default_factory=list)
    labels: set[str] = field(default_factory=set)
    """Labels that it aggregates by or joins on."""


def read(expression: str) -> Reading:
    """What `expression` (no variables left in it) reads; raises ValueError if it is no PromQL."""
    reading = Reading()
    _walk(promql_parser.parse(expression), "", reading)
    return reading


def _walk(node: Expr, function: str, reading: Reading) -> None:
    if isinstance(node, VectorSelector):
        reading.selectors.append(_selector(node, None, function))
    elif isinstance(node, MatrixSelector):
        reading.selectors.append(_selector(node.vector_selector, node.range, function))
    elif isinstance(node, AggregateExpr):
        if node.modifier is not None:
            reading.labels.update(node.modifier.labels)
        _walk(node.expr, function, reading)
        if node.param is not None:
            _walk(node.param, function, reading)
    elif isinstance(node, BinaryExpr):
        modifier = node.modifier
        if modifier is not None:
            reading.labels.update(modifier.matching.labels if modifier.matching is not None else ())
            reading.labels.update(modifier.group_labels or ())
        _walk(node.lhs, function, reading)
        _walk(node.rhs, function, reading)
    elif isinstance(node, Call):
        for argument in node.args:
            _walk(argument, node.func.name, reading)
    elif isinstance(node, ParenExpr | SubqueryExpr | UnaryExpr):
        _walk(node.expr, function, reading)


def _selector(node: VectorSelector, window: datetime.timedelta | None, function: str) -> Selector:
    names: tuple[str, ...] = (node.name,) if node.name else ()
    matchers = []
    for matcher in node.matchers.matchers:
        if matcher.name == "__name__":
            names = tuple(matcher.value.split("|"))
        else:
            matchers.append((matcher.name, _operator(matcher.op), matcher.value))
    return Selector(names, tuple(matchers), window, function)


def _operator(operator: MatchOp) -> str:
    if operator in (MatchOp.Equal, MatchOp.NotEqual):
        return "=" if operator == MatchOp.Equal else "!="
    return "=~" if operator == MatchOp.Re else "!~"
