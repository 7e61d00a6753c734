"""Criteria that take expected values from the run's own input: `{$input: city}`."""

from collections.abc import Hashable, Iterator

from pydantic import BaseModel, ValidationError

from processors.comparison import (
    INPUT,
    LITERAL,
    ONE_OF,
    equality_key,
    input_object,
    input_path,
    is_matcher,
    unknown_input,
)
from processors.model import AgentRun, Evaluator, JsonObject, JsonValue, NotEvaluated, contains_mask

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


def has_references(written: JsonValue) -> bool:
    """Whether a `$input` stands anywhere in `written`."""
    return any(True for _ in _references(written))


def _references(written: JsonValue) -> Iterator[JsonValue]:
    """The arguments of all `$input` in `written`."""
    if is_matcher(written):
        ((key, argument),) = written.items()
        if key == INPUT:
            yield argument
        elif key == ONE_OF and isinstance(argument, list):
            for member in argument:
                yield from _references(member)
    elif isinstance(written, dict | list):
        for member in written.values() if isinstance(written, dict) else written:
            yield from _references(member)


def _filled(written: JsonValue, values: dict[str, JsonValue]) -> JsonValue:
    """`written` with values in place of references."""
    if is_matcher(written):
        ((key, argument),) = written.items()
        if key == INPUT:
            value = values[str(argument)]
            return {LITERAL: value} if _mentions_matcher(value) else value
        if key == ONE_OF and isinstance(argument, list):
            return {key: [_filled(member, values) for member in argument]}
        return written
    if isinstance(written, dict):
        return {key: _filled(member, values) for key, member in written.items()}
    if isinstance(written, list):
        return [_filled(member, values) for member in written]
    return written


def _mentions_matcher(value: JsonValue) -> bool:
    if isinstance(value, dict):
        return is_matcher(value) or any(map(_mentions_matcher, value.values()))
    return isinstance(value, list) and any(map(_mentions_matcher, value))
