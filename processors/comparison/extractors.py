"""Extractors: which text of a run is graded, such as its last answer or the arguments of one call.

The extractors, their settings and their rules are those of letta-evals. What telemetry did not capture is
not the same as an empty text, though: then there is nothing to grade.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, TypeAlias

from pydantic import Field, model_validator

from processors.comparison.captured_value import comparable_result_text, unknown_arguments, unknown_result
from processors.documents import EvaluatorModel
from processors.model import (
    MAX_SEARCHED_CHARACTERS,
    AgentRun,
    Message,
    NotEvaluated,
    ToolCall,
    ValueState,
    has_mask,
    mask_places,
)
from processors.texts.linear_regex import LinearPattern, compile_linear

ExtractorName: TypeAlias = Literal[
    "last_assistant",
    "first_assistant",
    "all_assistant",
    "last_turn",
    "pattern",
    "tool_arguments",
    "tool_output",
    "after_marker",
]
Extract: TypeAlias = Callable[[AgentRun, int | None], str | NotEvaluated]


class ExtractorConfig(EvaluatorModel):
    """Settings of an extractor; each takes only its own."""

    separator: str = "\n"
    """all_assistant, last_turn: what stands between two messages."""
    pattern: str | None = Field(default=None, examples=[r"ANSWER:\s+(\d+)"])
    """pattern: the regular expression, in Python's language without look-around."""
    group: int | str = 0
    """pattern: number or name of the group to take, 0 for the whole match; with `search_all` and two or more
    groups, 0 for the first of them."""
    search_all: bool = False
    """pattern: all matches in the message, joined with spaces."""
    tool_name: str | None = Field(default=None, examples=["search"])
    """tool_arguments, tool_output: exact name of the tool."""
    marker: str | None = Field(default=None, examples=["ANSWER:"])
    """after_marker: the text is what follows."""
    include_marker: bool = False
    """after_marker: whether the text begins with the marker."""


_REQUIRED = ("pattern", "tool_name", "marker")
_MASKED = NotEvaluated.not_captured("answers of the agent: redacted in part")
_NOT_CAPTURED = NotEvaluated.not_captured("answers of the agent: absent")


class Extraction:
    """A configured extractor; raises ValueError where a setting is missing, unused or cannot work."""

    __slots__ = ("_extract", "reads_calls")

    def __init__(self, extractor: ExtractorName, config: ExtractorConfig) -> None:
        known, make = _EXTRACTORS[extractor]
        for key in _REQUIRED:
            if key in known and getattr(config, key) is None:
                raise ValueError(f'extractor_config: missing key "{key}", which extractor {extractor} needs')
        for key, field in type(config).model_fields.items():
            if key not in known and getattr(config, key) != field.default:
                takes = ", ".join(known)
                raise ValueError(
                    f'extractor_config: extractor {extractor} does not take "{key}"; it takes {takes}'
                )
        self.reads_calls = extractor in ("tool_arguments", "tool_output")
        """Whether the text comes from tool calls, which belong to no turn."""
        self._extract = make(config)

    def text(self, run: AgentRun, turn: int | None = None) -> str | NotEvaluated:
        """The text of `run`, of one turn alone if `turn` is given; empty where there is none.

        Not evaluated where the text may exist but was not captured, and beyond caps.
        """
        return self._extract(run, turn)


class ExtractorSettings(EvaluatorModel):
    """Which text of the run is graded."""

    extractor: ExtractorName = "last_assistant"
    """Where the graded text comes from: an answer of the agent, or one of its tool calls."""
    extractor_config: ExtractorConfig = Field(default_factory=ExtractorConfig)
    """Settings of the extractor."""

    @model_validator(mode="after")
    def _settings_fit_the_extractor(self) -> "ExtractorSettings":
        self.extraction()
        return self

    @property
    def extractor_is_given(self) -> bool:
        """Whether an extractor or settings of one were written."""
        return not self.model_fields_set.isdisjoint(("extractor", "extractor_config"))

    def extraction(self) -> Extraction:
        """The extractor, ready to use."""
        return Extraction(self.extractor, self.extractor_config)


def _messages(run: AgentRun, turn: int | None) -> Sequence[Message]:
    return run.messages if turn is None else [message for message in run.messages if message.turn == turn]


def _answers(messages: Sequence[Message]) -> list[Message]:
    return [message for message in messages if message.role == "assistant"]


def _over_answers(
    text_of: Callable[[list[Message]], str | NotEvaluated], *, last_turn: bool = False
) -> Extract:
    """The text that `text_of` makes of the assistant messages, or of those of the last turn."""

    def extract(run: AgentRun, turn: int | None) -> str | NotEvaluated:
        if not run.answers_are_known():
            return _NOT_CAPTURED
        messages = _messages(run, turn)
        if last_turn:
            last = max((message.turn for message in messages), default=0)
            messages = [message for message in messages if message.turn == last]
        return text_of(_answers(messages))

    return extract


def _joined(config: ExtractorConfig, *, last_turn: bool = False) -> Extract:
    return _over_answers(
        lambda answers: config.separator.join([answer.content for answer in answers]), last_turn=last_turn
    )


def _last_assistant(run: AgentRun, turn: int | None) -> str | NotEvaluated:
    """The last answer. Where the conversation does not end with one, the run's output is.

    Telemetry that shows neither has not captured the answer: an earlier message is not it.
    """
    messages = [message for message in _messages(run, turn) if message.role != "system"]
    if turn is None and not (messages and messages[-1].role == "assistant"):
        if isinstance(run.output, str) and run.output_state is ValueState.PRESENT:
            return run.output
        if run.messages_state is not ValueState.PRESENT:
            return _NOT_CAPTURED
    answers = _answers(messages)
    return answers[-1].content if answers else ""


def _after_marker(config: ExtractorConfig) -> Extract:
    marker = config.marker or ""

    def text_of(answers: list[Message]) -> str | NotEvaluated:
        for answer in reversed(answers):
            start = answer.content.find(marker)
            if _is_hidden_before(answer.content, start):
                return _MASKED
            if start >= 0:
                return answer.content[start if config.include_marker else start + len(marker) :].strip()
        return ""

    return _over_answers(text_of)


def _is_hidden_before(text: str, place: int) -> bool:
    """Whether a mask stands before `place` in `text`, or anywhere where that is -1."""
    first = next((first for first, _ in mask_places(text)), None) if has_mask(text) else None
    return first is not None and (place < 0 or first < place)


def _pattern(config: ExtractorConfig) -> Extract:
    pattern = compile_linear(config.pattern or "")
    number = _group_number(pattern, config)

    def text_of(answers: list[Message]) -> str | NotEvaluated:
        for answer in reversed(answers):
            text = answer.content
            if len(text) > MAX_SEARCHED_CHARACTERS:
                return NotEvaluated.over_limit(
                    f"a message has more than {MAX_SEARCHED_CHARACTERS} characters"
                )
            if has_mask(text):
                return _MASKED
            if not config.search_all:
                match = pattern.search(text)
                if match is not None:
                    return match[number] or ""
                continue
            matches = pattern.all_matches(text)
            if matches is None:
                return NotEvaluated.over_limit("a message has too many matches of the pattern")
            if matches:
                return " ".join([match[number] or "" for match in matches])
        return ""

    return _over_answers(text_of)


def _group_number(pattern: LinearPattern, config: ExtractorConfig) -> int:
    """Which text of a match is taken: with `search_all` what Python's `findall` gives, else the group."""
    group, groups = config.group, pattern.groups
    if config.search_all:
        if groups < 2:
            return groups
        if isinstance(group, int) and 0 <= group < groups:
            return group + 1
        raise ValueError(
            f"extractor_config.group: no group {group}, expected a number from 0 to {groups - 1}"
        )
    if isinstance(group, int) and 0 <= group <= groups:
        return group
    if isinstance(group, str) and group in pattern.group_names:
        return pattern.group_names[group]
    names = "".join([f", {name}" for name in pattern.group_names])
    numbers = f"a number from 0 to {groups}" if groups else "0"
    raise ValueError(f"extractor_config.group: the pattern has no group {group}, expected {numbers}{names}")


def _over_first_call(
    config: ExtractorConfig,
    text_of: Callable[[AgentRun, ToolCall], str | NotEvaluated],
    with_id: bool = False,
) -> Extract:
    """The text that `text_of` makes of the first call of the tool; empty where it was not called."""

    def extract(run: AgentRun, _: int | None) -> str | NotEvaluated:
        for call in run.calls:
            if call.name == config.tool_name and (call.call_id or not with_id):
                return text_of(run, call)
        return ""

    return extract


def _arguments(run: AgentRun, call: ToolCall) -> str | NotEvaluated:
    if call.arguments_state in (ValueState.PRESENT, ValueState.UNPARSED):
        return call.arguments_text or ""
    if call.arguments_state is ValueState.ABSENT and call.lenient_values:
        return "{}"
    return unknown_arguments(call)


def _output(run: AgentRun, call: ToolCall) -> str | NotEvaluated:
    """The text that the call returned, as it was recorded; nothing where it failed, or was only requested."""
    text = comparable_result_text(call)
    if text is not None:
        return text if call.result_text is None else call.result_text
    returned_nothing = call.error is not None or not call.executed or run.messages_state is ValueState.PRESENT
    if call.result_state is ValueState.ABSENT and returned_nothing:
        return ""
    return unknown_result(call)


_EXTRACTORS: Mapping[ExtractorName, tuple[Sequence[str], Callable[[ExtractorConfig], Extract]]] = {
    "last_assistant": (("separator",), lambda _: _last_assistant),
    "first_assistant": (
        ("separator",),
        lambda _: _over_answers(lambda answers: answers[0].content if answers else ""),
    ),
    "all_assistant": (("separator",), _joined),
    "last_turn": (("separator",), partial(_joined, last_turn=True)),
    "pattern": (("pattern", "group", "search_all"), _pattern),
    "tool_arguments": (("tool_name",), partial(_over_first_call, text_of=_arguments)),
    "tool_output": (("tool_name",), partial(_over_first_call, text_of=_output, with_id=True)),
    "after_marker": (("marker", "include_marker"), _after_marker),
}
"""For each extractor the settings that it takes, and what makes it."""
