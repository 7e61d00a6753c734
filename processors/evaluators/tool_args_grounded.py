"""Evaluator `tool-args-grounded`: whether arguments come from what the agent was told or shown."""

from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field
from pydantic import JsonValue as AnyJson

from processors.comparison import (
    JsonPath,
    Place,
    ToolPatterns,
    ToolSelectionConfig,
    comparable_result_text,
    comparable_result_value,
    equality_key,
    is_oversized,
    leaves,
    parse_json_path,
    place_text,
    readable_arguments,
    unknown_arguments,
    unknown_result,
)
from processors.model import (
    AgentRun,
    Evaluator,
    EvaluatorExample,
    JsonValue,
    NotEvaluated,
    RunFacts,
    Score,
    ToolCall,
    ValueState,
    has_mask,
    holds_mask,
    may_be_masked,
)
from processors.response_handling import Evidence, EvidenceTooLargeError

_SHOWN_VIOLATIONS = 20
_CHOICE_WORDS = ("enum", "const", "default", "examples")
_DEEPEST_SCHEMA = 12

_PathsByTool = list[tuple[ToolPatterns, list[JsonPath]]]


class ToolArgsGroundedConfig(ToolSelectionConfig):
    """Settings of `tool-args-grounded`."""

    only: dict[str, list[str]] | None = Field(
        default=None,
        description="For each tool (`*` and `?` allowed) the paths of the arguments to check; left out, all.",
        examples=[{"book_*": ["flight_id", "passengers[*].id"]}],
    )
    ignore: dict[str, list[str]] = Field(
        default_factory=dict,
        description="For each tool (`*` and `?` allowed) the paths of arguments that the agent may make up.",
        examples=[{"*": ["request_id"], "send_mail": ["body"]}],
    )
    constants: list[AnyJson] = Field(
        default_factory=list,
        description="Values that may be used without having been told.",
        examples=[["celsius", "EUR"]],
    )
    text: Literal["words", "whole"] = Field(
        default="words",
        description="How a text is looked up: words, as a whole or word by word; whole, only as a whole.",
    )


@dataclass(slots=True)
class _Findings:
    checked: int = 0
    ungrounded: list[str] = field(default_factory=list)


class ToolArgsGrounded(Evaluator):
    """The share of argument values that can be traced to what the agent was told or shown before the call.

    A value is traced to the user's input, the system's instructions, the result of an earlier call (also of
    earlier turns, not of a call that ran beside it), a choice that the tool's schema offers, or a constant of
    the configuration. score = values that are / values checked. Texts and numbers are checked, inside objects
    and lists too; booleans, nulls, empty texts and whole numbers up to 10 are not. How they are looked up
    stands in `processors.response_handling.grounding`. Dates are not checked where the user spoke of
    "tomorrow" and the like.

    There is nothing to expect. A run without values to check, so also one without calls, scores 1. Where the
    input or an earlier result is not known, a value that is not found makes the run not evaluated. Details
    name the argument, never its value.

    Example: "Fly me to Oslo", search(to="Oslo") returning [{"id": "AX7"}], book(id="AX9")
    scores 0.5, since the id of the second call was never told.
    """

    id = "tool-args-grounded"
    version = "2"
    Config = ToolArgsGroundedConfig
    example = EvaluatorExample(
        run="""
            input: Fly me to Oslo
            tool_calls:
              - {name: search, arguments: {to: Oslo}, result: [{id: AX7}]}
              - {name: book, arguments: {id: AX9}}
        """,
    )

    def __init__(self, config: ToolArgsGroundedConfig, criteria: None = None) -> None:
        self._categories = config.categories()
        self._only = None if config.only is None else _paths_by_tool(config.only)
        self._ignored = _paths_by_tool(config.ignore)
        self._constants: list[JsonValue] = [*config.constants]
        self._text: Literal["words", "whole"] = config.text

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not evaluated where evidence that is not known decides, and beyond caps."""
        try:
            answer = self._check(run)
        except EvidenceTooLargeError:
            return NotEvaluated.over_limit("more text in the run than arguments are looked up in")
        if isinstance(answer, NotEvaluated):
            return answer
        grounded = answer.checked - len(answer.ungrounded)
        shown = answer.ungrounded[:_SHOWN_VIOLATIONS]
        details: dict[str, JsonValue] = {
            "checked": answer.checked,
            "grounded": grounded,
            "ungrounded": [*shown],
        }
        if not shown:
            line = f"{grounded} of {answer.checked} values were told" if grounded else "no value to check"
            return Score(1.0, details, (line,))
        return Score(grounded / answer.checked, details, tuple(f"{path}: never told" for path in shown))

    def _check(self, run: AgentRun) -> _Findings | NotEvaluated:
        calls = run.calls
        findings = _Findings()
        evidence: Evidence | None = None
        blind: NotEvaluated | None = None
        masked: ToolCall | None = None
        shown = 0  # calls before this position have their results in the evidence
        for position, call in enumerate(calls):
            if call.category not in self._categories:
                continue
            arguments = readable_arguments(call)
            if arguments is None:
                return unknown_arguments(call)
            values = [
                (place, value)
                for place, value in leaves(arguments)
                if isinstance(value, (str, int, float))
                and not isinstance(value, bool)
                and self._is_checked(call, place)
            ]
            if not values:
                continue
            if evidence is None:
                evidence, blind = self._told(run)
            group = call.parallel_group
            while shown < position and (group is None or calls[shown].parallel_group != group):
                blind = _add_result(calls[shown], evidence) or blind
                shown += 1
            choices = _choices(run, call)
            for place, value in values:
                if isinstance(value, str) and has_mask(value):
                    masked = masked or call
                    continue
                findings.checked += 1
                if equality_key(value) in choices or evidence.supports(value, self._text):
                    continue
                if blind is not None:
                    return blind
                findings.ungrounded.append(f"call {position + 1}, {call.name}.{place_text(place)}")
        return findings if masked is None else unknown_arguments(masked)

    def _told(self, run: AgentRun) -> tuple[Evidence, NotEvaluated | None]:
        """What was told before the first call, and why that may not be all of it."""
        evidence = Evidence()
        evidence.add(self._constants)
        is_input_known = run.input_state is ValueState.PRESENT
        is_masked = is_input_known and holds_mask(run.input)
        if is_input_known:
            evidence.add(run.input, is_told=True)
        # Tool messages of earlier turns show results that were there before this run.
        turn = max((message.turn for message in run.messages), default=0)
        for message in run.messages:
            if message.role != "assistant":
                is_masked = is_masked or has_mask(message.content)
            if message.role in ("user", "system"):
                is_input_known = is_input_known or message.role == "user"
                evidence.add(message.content, is_told=True)
            elif message.role == "tool" and message.turn < turn:
                evidence.add(message.content)
        if is_masked:
            return evidence, NotEvaluated.not_captured("what the agent was told: redacted in part")
        if is_input_known:
            return evidence, None
        return evidence, NotEvaluated.not_captured(f"the input of the run: {run.input_state}")

    def _is_checked(self, call: ToolCall, place: Place) -> bool:
        if _covers(self._ignored, call, place):
            return False
        return self._only is None or _covers(self._only, call, place)


def _paths_by_tool(written: dict[str, list[str]]) -> _PathsByTool:
    return [
        (ToolPatterns([tool]), [parse_json_path(path) for path in paths]) for tool, paths in written.items()
    ]


def _covers(paths_by_tool: _PathsByTool, call: ToolCall, place: Place) -> bool:
    return any(
        call.name in tools and any(path.covers(place) for path in paths) for tools, paths in paths_by_tool
    )


def _add_result(call: ToolCall, evidence: Evidence) -> NotEvaluated | None:
    """Add what `call` returned; the answer to give if that is not known."""
    if call.error is not None:
        evidence.add(call.error.message)
    text = comparable_result_text(call)
    if text is None or is_oversized(text):
        return unknown_result(call) if call.error is None and call.executed else None
    result = comparable_result_value(call, text)
    evidence.add(result)
    return unknown_result(call) if may_be_masked(text) and holds_mask(result) else None


def _choices(run: AgentRun, call: ToolCall) -> set[object]:
    """The values that the schema of the called tool offers: its enumerations, constants and defaults."""
    found: set[object] = set()
    schema = (run.available_tools or {}).get(call.name)
    if isinstance(schema, dict):
        _collect_choices(schema, found, 0)
    return found


def _collect_choices(schema: JsonValue, found: set[object], depth: int) -> None:
    if depth > _DEEPEST_SCHEMA:
        return
    if isinstance(schema, list):
        for item in schema:
            _collect_choices(item, found, depth + 1)
    elif isinstance(schema, dict):
        for word, inner in schema.items():
            if word in _CHOICE_WORDS:
                found.update(equality_key(value) for _, value in leaves(inner))
            else:
                _collect_choices(inner, found, depth + 1)
