"""Criteria that take expected values from the run's own input: `{$input: city}`."""

from collections.abc import Callable, Hashable

from pydantic import BaseModel, ValidationError

from processors.comparison import (
    INPUT,
    LITERAL,
    ONE_OF,
    equality_key,
    input_path,
    is_matcher,
)
from processors.model import (
    AgentRun,
    Evaluator,
    JsonObject,
    JsonValue,
    NotEvaluated,
    NotEvaluatedReason,
    ValueState,
    contains_mask,
    parse_json,
)

_MAX_REMEMBERED = 64


class CriteriaTemplate:
    """Makes the evaluator for a run out of criteria with `$input` in them.

    For each run the references are replaced by the values at their paths, which count as literals. The
    evaluators of the inputs seen last are remembered.
    """

    def __init__(self, kind: type[Evaluator], config: BaseModel, criteria: JsonObject) -> None:
        """Take criteria that are valid for `kind` and hold at least one reference."""
        self._kind = kind
        self._config = config
        self._criteria = criteria
        self._paths = tuple(dict.fromkeys(map(input_path, _references(criteria))))
        self._evaluators: dict[Hashable, Evaluator] = {}

    def evaluator_for(self, run: AgentRun) -> Evaluator | NotEvaluated:
        """The evaluator with the values of this run, or why there is none.

        Not applicable: the input has nothing at a path, or something that the criteria cannot take.
        """
        unknown = unknown_input(run, "`$input`")
        if unknown is not None:
            return unknown
        members = input_object(run.input)
        root = run.input if members is None else members
        values: dict[str, JsonValue] = {}
        for path in self._paths:
            picked = path.values(root) if path.steps else [run.input]
            if not picked:
                return NotEvaluated.not_applicable(
                    f'`$input`: the input of the run has nothing at "{path.text}"'
                )
            if contains_mask(picked[0]):
                return NotEvaluated.not_captured(f'`$input`: redaction masked the input at "{path.text}"')
            values[path.text] = picked[0]
        key = tuple(equality_key(value) for value in values.values())
        evaluator = self._evaluators.get(key)
        if evaluator is None:
            created = self._create(values)
            if isinstance(created, NotEvaluated):
                return created
            if len(self._evaluators) >= _MAX_REMEMBERED:
                self._evaluators.clear()
            evaluator = self._evaluators[key] = created
        return evaluator

    def _create(self, values: dict[str, JsonValue]) -> Evaluator | NotEvaluated:
        kind = self._kind
        if kind.Criteria is None:
            raise TypeError(f"{kind.id} takes no criteria")
        try:
            criteria = kind.Criteria.model_validate(_filled(self._criteria, values))
            return kind(self._config, criteria)
        except (ValidationError, ValueError):
            paths = ", ".join(f'"{path}"' for path in values)
            return NotEvaluated.not_applicable(
                f"`$input`: {kind.id} cannot expect what the input has at {paths}"
            )


def unknown_input(run: AgentRun, what: str) -> NotEvaluated | None:
    """Why `what` (the part of the criteria that needs it) is not known; None where the input is known.

    Of a run that is not complete the input may still arrive; otherwise it was not captured.
    """
    if run.input_state is ValueState.PRESENT:
        return None
    if not run.complete:
        return NotEvaluated(
            NotEvaluatedReason(run.incomplete_reason),
            f"{what}: spans of this run may be missing, and with them its input",
        )
    return NotEvaluated.not_captured(f"{what}: the input of the run is {run.input_state}")


def input_object(value: JsonValue) -> JsonObject | None:
    """`value` where it is an object or a text that writes one as JSON, else None."""
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        try:
            value = parse_json(value)
        except ValueError:
            return None
    return value if isinstance(value, dict) else None


def has_references(written: JsonValue) -> bool:
    """Whether a `$input` stands anywhere in `written`."""
    return bool(_references(written))


def _references(written: JsonValue) -> list[JsonValue]:
    """The arguments of all `$input` in `written`."""
    collected: list[JsonValue] = []
    _replaced(written, collected.append)
    return collected


def _filled(written: JsonValue, values: dict[str, JsonValue]) -> JsonValue:
    """`written` with values in place of references."""

    def value_of(argument: JsonValue) -> JsonValue:
        value = values[str(argument)]
        return {LITERAL: value} if _mentions_matcher(value) else value

    return _replaced(written, value_of)


def _replaced(written: JsonValue, value_of: Callable[[JsonValue], JsonValue | None]) -> JsonValue:
    """`written` with what `value_of` returns for the argument of each `$input`."""
    if is_matcher(written):
        ((key, argument),) = written.items()
        if key == INPUT:
            return value_of(argument)
        if key == ONE_OF and isinstance(argument, list):
            return {key: [_replaced(member, value_of) for member in argument]}
        return written
    if isinstance(written, dict):
        return {key: _replaced(member, value_of) for key, member in written.items()}
    if isinstance(written, list):
        return [_replaced(member, value_of) for member in written]
    return written


def _mentions_matcher(value: JsonValue) -> bool:
    if isinstance(value, dict):
        return is_matcher(value) or any(map(_mentions_matcher, value.values()))
    return isinstance(value, list) and any(map(_mentions_matcher, value))
