"""Evaluator `tool-args-schema`: whether arguments follow the schemas of the tools."""

from pydantic import Field
from pydantic import JsonValue as AnyJson

from processors.comparison import (
    SchemaTooComplexError,
    ToolSelectionConfig,
    calls_of,
    comparable_arguments,
    is_oversized,
    schema_problems,
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
    NotEvaluatedReason,
    RunFacts,
    Score,
    ToolCall,
    ValueState,
    canonical_tool_name,
)

_SHOWN_VIOLATIONS = 20
_NO_OBJECT = "arguments: no JSON object"


class ToolArgsSchemaCriteria(EvaluatorModel):
    """Schemas for tools of which telemetry tells none, or another one."""

    schemas: dict[str, dict[str, AnyJson]] = Field(
        default_factory=dict,
        description="For each tool the JSON Schema of its arguments; goes before the one in the trace.",
        examples=[{"get_weather": {"type": "object", "required": ["city"]}}],
    )


class ToolArgsSchema(Evaluator):
    """The share of calls whose arguments are valid against the JSON Schema of their tool.

    score = calls with valid arguments / calls of tools whose schema is known. Schemas come from the criteria,
    else from what telemetry lists for the run (`gen_ai.tool.definitions` and its kin). What is checked stands
    in `processors.comparison.json_schema_check`. Arguments that begin like a JSON object and are none are not
    valid.

    There is nothing to expect. A run without calls scores 1; calls of which no tool has a known schema make
    the evaluation not applicable. Where arguments are not known the run is not evaluated.

    Example: with a schema that requires city, the calls get_weather(city="Oslo"), get_weather(town="Oslo")
    score 0.5.
    """

    id = "tool-args-schema"
    Config = ToolSelectionConfig
    Criteria = ToolArgsSchemaCriteria
    example = EvaluatorExample(
        run="""
            tool_calls:
              - {name: get_weather, arguments: {city: Oslo}}
              - {name: get_weather, arguments: {town: Oslo}}
        """,
        evaluation="criteria: {schemas: {get_weather: {type: object, required: [city]}}}",
    )

    def __init__(self, config: ToolSelectionConfig, criteria: ToolArgsSchemaCriteria | None = None) -> None:
        self._categories = config.categories()
        self._schemas: dict[str, JsonValue] = {}
        for name, schema in ({} if criteria is None else criteria.schemas).items():
            problems = schema_problems(schema, name)
            if problems:
                raise ValueError("; ".join(problems))
            self._schemas[canonical_tool_name(name)] = schema

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not evaluated where arguments are not known, and beyond caps."""
        calls = calls_of(run, self._categories)
        if len(calls) > MAX_ASSIGNMENT_ATTEMPTS:
            return NotEvaluated(
                NotEvaluatedReason.OVER_LIMIT, f"{len(calls)} tool calls, at most {MAX_ASSIGNMENT_ATTEMPTS}"
            )
        schemas = self._known_schemas(run) if calls else {}
        checked = valid = 0
        violations: list[str] = []
        for position, call in enumerate(calls):
            schema = schemas.get(canonical_tool_name(call.name))
            if schema is None:
                continue
            checked += 1
            found = _violations(call, schema)
            if isinstance(found, NotEvaluated):
                return found
            valid += not found
            violations += [f"{call.name}[{position}].{text}" for text in found]
        if calls and not checked:
            return NotEvaluated(
                NotEvaluatedReason.NOT_APPLICABLE, "no schema is known of the tools that were called"
            )
        details: dict[str, JsonValue] = {
            "checked": checked,
            "valid": valid,
            "unchecked": len(calls) - checked,
            "violations": [*violations[:_SHOWN_VIOLATIONS]],
        }
        if not violations:
            line = f"{valid} of {checked} calls are valid" if checked else "no call was made"
            return Score(1.0, details, (line,))
        return Score(valid / checked, details, tuple(violations[:_SHOWN_VIOLATIONS]))

    def _known_schemas(self, run: AgentRun) -> dict[str, JsonValue]:
        """The schemas by canonical name of the tool; without a schema a tool is left out."""
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
        return [str(violation) for violation in schema_violations(arguments, schema)]
    except SchemaTooComplexError:
        return NotEvaluated(
            NotEvaluatedReason.OVER_LIMIT, f"arguments of {call.name}: too many to check against the schema"
        )
