"""Evaluators of arguments without expected ones: valid by a schema, returned by a call, or traceable.

`tool-args-schema`, `tool-args-flow` and `tool-args-grounded`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pydantic import Field, model_validator
from pydantic import JsonValue as AnyJson

from processors.comparison import (
    IncludeFailed,
    JsonPath,
    Place,
    ToolPatterns,
    ToolSelectionConfig,
    UnresolvedReferenceError,
    check_schema,
    comparable_arguments,
    comparable_result_text,
    comparable_result_value,
    equality_key,
    is_oversized,
    known_equality,
    leaves,
    parse_json_path,
    place_text,
    readable_arguments,
    schema_violations,
    unknown_arguments,
    unknown_result,
)
from processors.documents import EvaluatorModel
from processors.model import (
    MAX_ASSIGNMENT_ATTEMPTS,
    AgentRun,
    Evaluator,
    JsonObject,
    JsonValue,
    NotEvaluated,
    OverLimitError,
    RunFacts,
    Score,
    ToolCall,
    ValueState,
    canonical_tool_name,
    contains_mask,
    has_mask,
    has_masked_key,
    may_be_masked,
)
from processors.response_handling import FROM_USER, Evidence

_SHOWN_VIOLATIONS = 20
_NO_OBJECT = "arguments: no JSON object"
_CHOICE_WORDS = ("enum", "const", "default", "examples")
_DEEPEST_SCHEMA = 12
_EARLIER = -2
"""The position of calls of earlier turns, of which only the results are known."""

_PathsByTool = list[tuple[ToolPatterns, list[JsonPath]]]


class ToolArgsSchemaConfig(ToolSelectionConfig):
    """Settings of `tool-args-schema`."""

    include_failed: IncludeFailed = True


class ToolArgsSchemaCriteria(EvaluatorModel):
    """Schemas for the tools that the evaluation is about."""

    schemas: dict[str, dict[str, AnyJson]] = Field(
        default_factory=dict, examples=[{"get_weather": {"type": "object", "required": ["city"]}}]
    )
    """For each tool the JSON Schema of its arguments, which overrides the one in the trace. Calls of other
    tools are then not checked."""


class ToolArgsSchema(Evaluator):
    """The share of calls whose arguments are valid against the JSON Schema of their tool.

    score = calls with valid arguments / calls of tools that have a schema. With schemas in the criteria these
    are the tools named there; without any, those whose schema telemetry lists for the run
    (`gen_ai.tool.definitions` and its kin; `processors.comparison.json_schema_check`). Arguments that begin
    like a JSON object and are none are not valid.

    A run without calls scores 1, and so does one without calls of the tools that the criteria name. Calls of
    which telemetry lists no schema make an evaluation without criteria not applicable. Where arguments are
    not known, or a `$ref` that bears on them leads nowhere, the run is not evaluated, unless it fails even if
    they are valid.
    """

    id = "tool-args-schema"
    version = "3"

    def __init__(self, config: ToolArgsSchemaConfig, criteria: ToolArgsSchemaCriteria | None = None) -> None:
        self._categories = config.categories()
        self._schemas: dict[str, JsonValue] = {}
        for name, schema in ({} if criteria is None else criteria.schemas).items():
            check_schema(schema, name)
            self._schemas[canonical_tool_name(name)] = schema
        self._include_failed = config.include_failed

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not evaluated where arguments are not known, and beyond caps."""
        calls = [
            (place, call)
            for place, call in enumerate(run.calls, 1)
            if call.category in self._categories
            and (self._include_failed or (call.error is None and call.executed))
        ]
        if len(calls) > MAX_ASSIGNMENT_ATTEMPTS:
            return NotEvaluated.over_limit(f"{len(calls)} tool calls, at most {MAX_ASSIGNMENT_ATTEMPTS}")
        schemas = self._known_schemas(run) if calls else {}
        checked = valid = 0
        violations: list[str] = []
        missing: NotEvaluated | None = None
        for place, call in calls:
            schema = schemas.get(canonical_tool_name(call.name))
            if schema is None:
                continue
            checked += 1
            broken = _violations(call, schema)
            if isinstance(broken, NotEvaluated):
                missing, broken = missing or broken, []
            valid += not broken
            violations += [f"call {place}, {call.name}.{text}" for text in broken]
        if calls and not checked and not self._schemas:
            return NotEvaluated.not_applicable("no schema is known of the tools that were called")
        details: JsonObject = {
            "checked": checked,
            "valid": valid,
            "unchecked": len(calls) - checked,
            "violations": [*violations[:_SHOWN_VIOLATIONS]],
        }
        if not violations:
            none = "no call of a tool with a schema was made" if calls else "no call was made"
            lines: tuple[str, ...] = (f"{valid} of {checked} calls are valid" if checked else none,)
        else:
            lines = tuple(violations[:_SHOWN_VIOLATIONS])
        score = Score(valid / checked if checked else 1.0, details, lines)
        return score if missing is None else missing.unless(score)

    def _known_schemas(self, run: AgentRun) -> dict[str, JsonValue]:
        """The schemas by canonical name of the tool; without a schema a tool is left out."""
        return self._schemas or {
            canonical_tool_name(name): schema
            for name, schema in (run.available_tools or {}).items()
            if isinstance(schema, dict)
        }


def _violations(call: ToolCall, schema: JsonValue) -> list[str] | NotEvaluated:
    if is_oversized(call.arguments_text):
        return unknown_arguments(call)
    arguments = comparable_arguments(call)
    if arguments is None:
        text = call.arguments_text or ""
        if call.arguments_state is ValueState.UNPARSED and text.lstrip().startswith("{"):
            return [_NO_OBJECT]
        return unknown_arguments(call)
    try:
        broken = schema_violations(arguments, schema, resolve=True)
        return unknown_arguments(call) if broken is None else broken
    except UnresolvedReferenceError as error:
        return NotEvaluated.not_captured(f"the schema of {call.name} lacks what it refers to: {error}")
    except OverLimitError:
        return NotEvaluated.over_limit(f"arguments of {call.name}: too many to check against the schema")


class ToolArgsFlowConfig(EvaluatorModel):
    """Settings of `tool-args-flow`."""

    comparison: Literal["value", "text"] = "value"
    """How values are compared: value, where 42 and "42" differ; text, where they are equal."""


class FlowSource(EvaluatorModel):
    """A value that a call returned."""

    from_tool: str
    """The tool that returned it, `*` and `?` allowed."""
    from_path: str = ""
    """Path of the value in the result; left out, the whole result."""


class ArgumentFlow(EvaluatorModel):
    """One argument and where its value has to originate: `from_tool`, or one of `any_of`."""

    tool: str
    """The tool whose calls are checked, `*` and `?` allowed."""
    argument: str = Field(examples=["flight_id", "passengers[*].id"])
    """Path of the argument; of a path with `[*]` every value is checked."""
    from_tool: str | None = None
    """The tool that must have returned the value, `*` and `?` allowed."""
    from_path: str = Field(default="", examples=["flights[*].id"])
    """Path of the value in the result; left out, the whole result."""
    any_of: list[FlowSource] | None = Field(
        default=None,
        min_length=1,
        examples=[[{"from_tool": "get_order", "from_path": "payment_id"}, {"from_tool": "list_cards"}]],
    )
    """Several sources, one of which must have returned the value."""
    required: bool = True
    """Whether a call without the argument is a violation."""

    @model_validator(mode="after")
    def _has_a_source(self) -> "ArgumentFlow":
        if (self.from_tool is None) == (self.any_of is None):
            raise ValueError("expected either from_tool or any_of")
        if self.from_path and self.any_of is not None:
            raise ValueError("from_path: expected in the entries of any_of")
        return self


class ToolArgsFlowCriteria(EvaluatorModel):
    """The flows to expect."""

    flows: list[ArgumentFlow] = Field(
        min_length=1,
        examples=[
            [{"tool": "book", "argument": "flight_id", "from_tool": "search", "from_path": "flights[*].id"}]
        ],
    )
    """Arguments with the results from which their values have to originate."""


class _Flow(NamedTuple):
    written: ArgumentFlow
    tools: ToolPatterns
    argument: JsonPath
    sources: list[tuple[ToolPatterns, JsonPath]]
    label: str


@dataclass(slots=True)
class _Checks:
    """What was checked, what was wrong, and how many values were compared."""

    checked: int = 0
    violations: list[str] = field(default_factory=list)
    comparisons: int = 0

    def score(self, met: str, violated: str, held: str, none: str, suffix: str = "") -> Score:
        """The share that was right, with the keys of details and the words for all, none and each."""
        right = self.checked - len(self.violations)
        shown = self.violations[:_SHOWN_VIOLATIONS]
        details: JsonObject = {"checked": self.checked, met: right, violated: [*shown]}
        if not shown:
            return Score(1.0, details, (f"{right} of {self.checked} {held}" if right else none,))
        return Score(right / self.checked, details, tuple([text + suffix for text in shown]))


class ToolArgsFlow(Evaluator):
    """The share of arguments that have the value which an earlier call returned.

    For each flow and each call of its tool, the argument has to equal (see `value_equality`)
    a value at the path in the result of an earlier call of the source, or of one of several; a call of the
    same parallel group is not earlier. score = arguments that do / arguments checked. An argument that is
    not there counts as one that does not, unless `required: false`.

    A run in which no argument is checked, so also one without calls, scores 1. Where a result or argument
    that is not known could decide, the run is not evaluated. Details name the argument, never its value.
    """

    id = "tool-args-flow"
    over_calls = True

    def __init__(self, config: ToolArgsFlowConfig, criteria: ToolArgsFlowCriteria) -> None:
        self._as_text = config.comparison == "text"
        self._flows = [
            _Flow(
                flow,
                ToolPatterns([flow.tool]),
                parse_json_path(flow.argument),
                [(ToolPatterns([tool]), parse_json_path(path)) for tool, path in _sources(flow)],
                " or ".join(f"{tool}.{path}".rstrip(".") for tool, path in _sources(flow)),
            )
            for flow in criteria.flows
        ]

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not evaluated where values that are not known decide, and beyond caps."""
        calls = run.calls
        checks = _Checks()
        for flow in self._flows:
            for position, call in enumerate(calls):
                if call.name in flow.tools:
                    problem = self._check(flow, calls, position, checks)
                    if problem is not None:
                        return problem
        return checks.score("met", "violations", "arguments originate in results", "nothing to check")

    def _check(
        self, flow: _Flow, calls: Sequence[ToolCall], position: int, checks: _Checks
    ) -> NotEvaluated | None:
        """Check one call; what keeps the run from being evaluated, if anything does."""
        call = calls[position]
        arguments = readable_arguments(call)
        if arguments is None:
            return unknown_arguments(call)
        where = f"call {position + 1}, {call.name}.{flow.argument.text}"
        values = flow.argument.values(arguments)
        if not values:
            if has_masked_key(arguments):
                return unknown_arguments(call)
            if flow.written.required:
                checks.checked += 1
                checks.violations.append(f"{where}: missing")
            return None
        returned, unknown, has_source = self._returned(flow, calls, position)
        for value in values:
            checks.checked += 1
            checks.comparisons += len(returned)
            if checks.comparisons > MAX_ASSIGNMENT_ATTEMPTS:
                return NotEvaluated.over_limit(
                    f"more than {MAX_ASSIGNMENT_ATTEMPTS} comparisons of arguments with results"
                )
            verdicts = {self._equal(value, other) for other in returned}
            if True in verdicts:
                continue
            if None in verdicts or contains_mask(value):
                return unknown_arguments(call)
            if unknown is not None:
                return unknown_result(unknown)
            reason = f"not in any earlier {flow.label}" if has_source else f"no earlier call of {flow.label}"
            checks.violations.append(f"{where}: {reason}")
        return None

    def _returned(
        self, flow: _Flow, calls: Sequence[ToolCall], position: int
    ) -> tuple[list[JsonValue], ToolCall | None, bool]:
        """What earlier calls returned, a call whose result is not known, and whether there was any call."""
        group = calls[position].parallel_group
        returned: list[JsonValue] = []
        unknown: ToolCall | None = None
        has_source = False
        for call in calls[:position]:
            paths = [path for tools, path in flow.sources if call.name in tools]
            if not paths or (group is not None and call.parallel_group == group):
                continue
            has_source = True
            results, is_known = _result_of(call)
            picked = [value for result in results for path in paths for value in path.values(result)]
            if not is_known and not picked:
                unknown = unknown or call
            returned += picked
        return returned, unknown, has_source

    def _equal(self, value: JsonValue, other: JsonValue) -> bool | None:
        if self._as_text and isinstance(value, (str, int, float)) and isinstance(other, (str, int, float)):
            return known_equality(str(value).strip(), str(other).strip())
        return known_equality(value, other)


def _sources(flow: ArgumentFlow) -> list[tuple[str, str]]:
    """The tools that may have returned the value, and where in their results."""
    if flow.any_of is None:
        return [(flow.from_tool or "", flow.from_path)]
    return [(source.from_tool, source.from_path) for source in flow.any_of]


class ToolArgsGroundedConfig(ToolSelectionConfig):
    """Settings of `tool-args-grounded`."""

    only: dict[str, list[str]] | None = Field(
        default=None, examples=[{"book_*": ["flight_id", "passengers[*].id"]}]
    )
    """For each tool (`*` and `?` allowed) the paths of the arguments to check; left out, all."""
    ignore: dict[str, list[str]] = Field(
        default_factory=dict, examples=[{"*": ["request_id"], "send_mail": ["body"]}]
    )
    """For each tool (`*` and `?` allowed) the paths of arguments that the agent may make up."""
    constants: list[AnyJson] = Field(default_factory=list, examples=[["celsius", "EUR"]])
    """Values that may be used without having been given."""
    text: Literal["words", "whole"] = "words"
    """How a text is looked up: words, as a whole or word by word; whole, only as a whole."""


class ToolArgsGrounded(Evaluator):
    """The share of argument values that can be traced to what the agent was given before the call.

    A value is traced to the user's input, the system's instructions, the result of an earlier call (also of
    earlier turns, not of a parallel call), a choice that the tool's schema offers, or a constant of
    the configuration. score = values that are / values checked. Texts and numbers are checked, inside objects
    and lists too; booleans, nulls, empty texts and whole numbers up to 10 are not
    (`processors.response_handling.grounding`). Dates are not checked where the user wrote of "tomorrow" and
    the like.

    There is nothing to expect. A run without values to check, so also one without calls, scores 1. Where the
    input or an earlier result is not known, a value that is not found makes the run not evaluated. Details
    name the argument, never its value.
    """

    id = "tool-args-grounded"
    version = "3"

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
        except OverLimitError as error:
            return NotEvaluated.over_limit(str(error))
        if isinstance(answer, NotEvaluated):
            return answer
        return answer.score(
            "grounded", "ungrounded", "values are grounded", "no value to check", suffix=": not grounded"
        )

    def _check(self, run: AgentRun) -> _Checks | NotEvaluated:
        calls = run.calls
        checks = _Checks()
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
                and not _covers(self._ignored, call, place)
                and (self._only is None or _covers(self._only, call, place))
            ]
            if not values:
                continue
            if evidence is None:
                evidence, blind = self._given(run)
            group = call.parallel_group
            while shown < position and (group is None or calls[shown].parallel_group != group):
                blind = _add_result(calls[shown], shown, evidence) or blind
                shown += 1
            choices = {*_choices((run.available_tools or {}).get(call.name))}
            for place, value in values:
                if isinstance(value, str) and has_mask(value):
                    masked = masked or call
                    continue
                checks.checked += 1
                if equality_key(value) in choices or evidence.supports(value, self._text):
                    continue
                if blind is not None:
                    return blind
                checks.violations.append(f"call {position + 1}, {call.name}.{place_text(place)}")
        return checks if masked is None else unknown_arguments(masked)

    def _given(self, run: AgentRun) -> tuple[Evidence, NotEvaluated | None]:
        """What the agent was given before the first call, and why that may not be all of it."""
        evidence = Evidence()
        evidence.add(self._constants, FROM_USER)
        is_input_known = run.input_state is ValueState.PRESENT
        is_masked = is_input_known and contains_mask(run.input)
        if is_input_known:
            evidence.add(run.input, FROM_USER)
        # Tool messages of earlier turns show results that were there before this run.
        turn = max((message.turn for message in run.messages), default=0)
        for message in run.messages:
            if message.role != "assistant":
                is_masked = is_masked or has_mask(message.content)
            if message.role in ("user", "system"):
                is_input_known = is_input_known or message.role == "user"
                evidence.add(message.content, FROM_USER)
            elif message.role == "tool" and message.turn < turn:
                evidence.add(message.content, _EARLIER)
        if is_masked:
            return evidence, NotEvaluated.not_captured("what the agent was given: redacted in part")
        if is_input_known:
            return evidence, None
        return evidence, NotEvaluated.not_captured(f"the input of the run: {run.input_state}")


def _paths_by_tool(written: dict[str, list[str]]) -> _PathsByTool:
    return [
        (ToolPatterns([tool]), [parse_json_path(path) for path in paths]) for tool, paths in written.items()
    ]


def _covers(paths_by_tool: _PathsByTool, call: ToolCall, place: Place) -> bool:
    return any(
        call.name in tools and any(path.covers(place) for path in paths) for tools, paths in paths_by_tool
    )


def _add_result(call: ToolCall, position: int, evidence: Evidence) -> NotEvaluated | None:
    """Add what `call` returned; the answer to give if that is not all of it."""
    if call.error is not None:
        evidence.add(call.error.message, position)
    results, is_known = _result_of(call)
    for result in results:
        evidence.add(result, position)
    return None if is_known else unknown_result(call)


def _result_of(call: ToolCall) -> tuple[list[JsonValue], bool]:
    """What `call` returned, nothing where it is not known or there is none, and whether that is all of it."""
    text = comparable_result_text(call)
    if text is None or is_oversized(text):
        return [], call.error is not None or not call.executed
    value = comparable_result_value(call, text)
    return [value], not (may_be_masked(text) and contains_mask(value))


def _choices(schema: JsonValue, depth: int = 0) -> Iterator[object]:
    """The values that the schema of a tool offers: its enumerations, constants and defaults."""
    if depth > _DEEPEST_SCHEMA:
        return
    if isinstance(schema, list):
        for item in schema:
            yield from _choices(item, depth + 1)
    elif isinstance(schema, dict):
        for word, inner in schema.items():
            if word in _CHOICE_WORDS:
                yield from (equality_key(value) for _, value in leaves(inner))
            else:
                yield from _choices(inner, depth + 1)
