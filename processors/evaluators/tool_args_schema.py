"""Evaluator `tool-args-schema`: whether arguments follow the schemas of the tools."""

from pydantic import Field
from pydantic import JsonValue as AnyJson

from processors.comparison import (
    IncludeFailed,
    SchemaTooComplexError,
    ToolSelectionConfig,
    UnresolvedReferenceError,
    check_schema,
    comparable_arguments,
    is_oversized,
    schema_violations,
    unknown_arguments,
)
from processors.documents import EvaluatorModel
from processors.model import (
    MAX_ASSIGNMENT_ATTEMPTS,
    AgentRun,
    Evaluator,
    EvaluatorExample,
    JsonValue,
    NotEvaluated,
    RunFacts,
    Score,
    ToolCall,
    ValueState,
    canonical_tool_name,
)

_SHOWN_VIOLATIONS = 20
_NO_OBJECT = "arguments: no JSON object"


class ToolArgsSchemaConfig(ToolSelectionConfig):
    """Settings of `tool-args-schema`."""

    telemetry_schemas: bool = Field(
        default=False,
        description="With schemas in the criteria: whether calls of other tools are held against the schemas "
        "that telemetry lists. Without any in the criteria they always are.",
    )
    include_failed: IncludeFailed = True


class ToolArgsSchemaCriteria(EvaluatorModel):
    """Schemas for the tools that the evaluation is about."""

    schemas: dict[str, dict[str, AnyJson]] = Field(
        default_factory=dict,
        description="For each tool the JSON Schema of its arguments; goes before the one in the trace. Calls of "  # noqa: E501
        "other tools are then left alone, unless `telemetry_schemas` is set.",
        examples=[{"get_weather": {"type": "object", "required": ["city"]}}],
    )


class ToolArgsSchema(Evaluator):
    """The share of calls whose arguments are valid against the JSON Schema of their tool.

    score = calls with valid arguments / calls of tools that have a schema. With schemas in the criteria these
    are the tools named there; without any, those whose schema telemetry lists for the run
    (`gen_ai.tool.definitions` and its kin); with `telemetry_schemas` both. What is checked stands in
    `processors.comparison.json_schema_check`. Arguments that begin like a JSON object and are none are not
    valid.

    A run without calls scores 1, and so does one without calls of the tools that the criteria name. Calls of
    which telemetry lists no schema make an evaluation without criteria not applicable. Where arguments are
    not known, or a `$ref` that bears on them leads nowhere, the run is not evaluated.

    Example: with a schema that requires city, the calls get_weather(city="Oslo"), get_weather(town="Oslo")
    score 0.5.
    """

    id = "tool-args-schema"
    version = "3"
    Config = ToolArgsSchemaConfig
    Criteria = ToolArgsSchemaCriteria
    example = EvaluatorExample(
        run="""
            tool_calls:
              - {name: get_weather, arguments: {city: Oslo}}
              - {name: get_weather, arguments: {town: Oslo}}
        """,
        evaluation="criteria: {schemas: {get_weather: {type: object, required: [city]}}}",
    )

    def __init__(self, config: ToolArgsSchemaConfig, criteria: ToolArgsSchemaCriteria | None = None) -> None:
        self._categories = config.categories()
        self._schemas: dict[str, JsonValue] = {}
        for name, schema in ({} if criteria is None else criteria.schemas).items():
            check_schema(schema, name)
            self._schemas[canonical_tool_name(name)] = schema
        self._include_failed = config.include_failed
        self._heeds_telemetry = config.telemetry_schemas or not self._schemas

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not evaluated where arguments are not known, and beyond caps."""
        calls = [(place, call) for place, call in enumerate(run.calls, 1) if self._counts(call)]
        if len(calls) > MAX_ASSIGNMENT_ATTEMPTS:
            return NotEvaluated.over_limit(f"{len(calls)} tool calls, at most {MAX_ASSIGNMENT_ATTEMPTS}")
        schemas = self._known_schemas(run) if calls else {}
        checked = valid = 0
        violations: list[str] = []
        for place, call in calls:
            schema = schemas.get(canonical_tool_name(call.name))
            if schema is None:
                continue
            checked += 1
            found = _violations(call, schema)
            if isinstance(found, NotEvaluated):
                return found
            valid += not found
            violations += [f"call {place}, {call.name}.{text}" for text in found]
        if calls and not checked and not self._schemas:
            return NotEvaluated.not_applicable("no schema is known of the tools that were called")
        details: dict[str, JsonValue] = {
            "checked": checked,
            "valid": valid,
            "unchecked": len(calls) - checked,
            "violations": [*violations[:_SHOWN_VIOLATIONS]],
        }
        if not violations:
            none = "no call of a tool with a schema was made" if calls else "no call was made"
            return Score(1.0, details, (f"{valid} of {checked} calls are valid" if checked else none,))
        return Score(valid / checked, details, tuple(violations[:_SHOWN_VIOLATIONS]))

    def _counts(self, call: ToolCall) -> bool:
        is_failed = call.error is not None or not call.executed
        return call.category in self._categories and (self._include_failed or not is_failed)

    def _known_schemas(self, run: AgentRun) -> dict[str, JsonValue]:
        """The schemas by canonical name of the tool; without a schema a tool is left out."""
        if not self._heeds_telemetry:
            return self._schemas
        told = {
            canonical_tool_name(name): schema
            for name, schema in (run.available_tools or {}).items()
            if isinstance(schema, dict)
        }
        return told | self._schemas


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
        found = schema_violations(arguments, schema, resolve=True)
        return unknown_arguments(call) if found is None else found
    except UnresolvedReferenceError as error:
        return NotEvaluated.not_captured(f"the schema of {call.name} lacks what it refers to: {error}")
    except SchemaTooComplexError:
        return NotEvaluated.over_limit(f"arguments of {call.name}: too many to check against the schema")
