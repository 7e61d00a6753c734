"""JSON schemas of the files that people write, and of runs files, for editors, CI and readers.

Those of what people write are made from the models. They follow what the models accept, with two
simplifications: booleans are `true` and `false` only, and a text with `${env:` in it is taken wherever a
number, a boolean or a fixed word is expected.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from pydantic.json_schema import models_json_schema

from collector.configuration.service_file import PROMETHEUS, ServiceConfig, exporter_models
from collector.tools.alerting import ObjectivesFile
from processors.annotation import run_line_schema
from processors.comparison import INPUT, MATCHER_ARGUMENTS, ONE_OF
from processors.criteria import SCHEMA_KEY, CriteriaFile, evaluator_types
from processors.model import Evaluator

JsonSchema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE: JsonSchema = {"type": "string", "pattern": r"\$\{env:"}
_ANNOTATIONS = ("description", "default", "examples")


def schema_documents(custom_evaluators: Iterable[str] = ()) -> dict[str, JsonSchema]:
    """The schema of each kind of file: `config`, `criteria`, `objectives`; `run` is a line of a runs file.

    Criteria may name the built-in evaluators and `custom_evaluators`.
    """
    return {
        "config": _config_schema(),
        "criteria": _criteria_schema(custom_evaluators),
        "objectives": _schemas(ObjectivesFile, {})[0],
        "run": run_line_schema(),
    }


def _config_schema() -> JsonSchema:
    schema, references = _schemas(ServiceConfig, exporter_models())
    exporters = schema["properties"]["exporters"]
    exporters.pop("default", None)
    exporters["additionalProperties"] = False
    exporters["patternProperties"] = {
        f"^{name}$" if name == PROMETHEUS else f"^{name}(/[A-Za-z0-9_.-]+)?$": _nullable(reference)
        for name, reference in references.items()
    }
    return schema


def _criteria_schema(custom_evaluators: Iterable[str]) -> JsonSchema:
    evaluators = evaluator_types()
    models = {
        f"{name}.{part}": model
        for name, kind in evaluators.items()
        for part, model in (("config", kind.Config), ("criteria", kind.Criteria))
        if model is not None
    }
    schema, references = _schemas(CriteriaFile, models)
    definitions = schema["$defs"]
    for definition in definitions.values():
        _add_camel_case(definition)
    schema["properties"][SCHEMA_KEY] = {"type": "string", "description": "The schema that editors check by."}
    definitions["ExpectedJson"] = _expected("ExpectedJson", MATCHER_ARGUMENTS)
    definitions["ExpectedObject"] = {"type": "object", "$ref": "#/$defs/ExpectedJson"}
    conditions = {key: schema for key, schema in MATCHER_ARGUMENTS.items() if key != INPUT}
    definitions["Condition"] = _expected("Condition", conditions)
    entry, alternative = definitions["EvaluationEntry"], definitions["AlternativeEntry"]
    for one, known in ((entry, [*evaluators, *custom_evaluators]), (alternative, [*evaluators])):
        spellings = "|".join(name.replace("-", "[-_]") for name in known)
        one["properties"]["evaluator"] = {
            "description": one["properties"]["evaluator"]["description"],
            "anyOf": [{"enum": known}, {"pattern": f"^(uipath[-_])?({spellings})$"}, _REFERENCE],
        }
        one["allOf"] = []
    for name, kind in evaluators.items():
        definitions[f"{name}.entry"] = _of_evaluator(name, kind, references, definitions)
        own = {"$ref": f"#/$defs/{name}.entry"}
        inherited = {"items": {"if": {"not": {"required": ["evaluator"]}}, "then": own}}
        pattern = f"^(uipath[-_])?{name.replace('-', '[-_]')}$"
        condition = {"required": ["evaluator"], "properties": {"evaluator": {"pattern": pattern}}}
        alternative["allOf"].append({"if": condition, "then": own})
        several = {"properties": dict.fromkeys(("any_of", "anyOf"), inherited)}
        entry["allOf"].append({"if": condition, "then": {**own, **several}})
    return schema


def _expected(name: str, matchers: Mapping[str, JsonSchema]) -> JsonSchema:
    """The definition `name` of a value in which `matchers` may stand anywhere."""
    reference = {"$ref": f"#/$defs/{name}"}
    arguments = {key: _tidied(schema) for key, schema in matchers.items()}
    arguments[ONE_OF]["items"] = reference
    return {
        "if": {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "propertyNames": {"pattern": "^[$]"},
        },
        "then": {"properties": arguments, "additionalProperties": False},
        "else": {"items": reference, "additionalProperties": reference},
    }


def _of_evaluator(
    name: str, kind: type[Evaluator], references: Mapping[str, JsonSchema], definitions: JsonSchema
) -> JsonSchema:
    """The `config` and `criteria` of an entry of the evaluator `name`."""
    criteria = references.get(f"{name}.criteria", {"type": "object", "maxProperties": 0})
    config = dict(definitions[references[f"{name}.config"]["$ref"].rpartition("/")[2]])
    accepted = {key: {"type": "string"} for key in ("name", "description")}
    spellings = ["default_evaluation_criteria", "defaultEvaluationCriteria"]
    accepted |= {key: _nullable(criteria) for key in spellings}
    config["properties"] = accepted | config.get("properties", {})
    config["not"] = {"anyOf": [{"required": spellings}, *config.get("not", {"anyOf": []})["anyOf"]]}
    return {"properties": {"config": _nullable(config), "criteria": _nullable(criteria)}}


def _nullable(schema: JsonSchema) -> JsonSchema:
    return {"anyOf": [schema, {"type": "null"}]}


def _schemas(
    root: type[BaseModel], others: Mapping[str, type[BaseModel]]
) -> tuple[JsonSchema, dict[str, JsonSchema]]:
    """The schema of `root` with the definitions of `others`, and a reference to each of these."""
    every = list(dict.fromkeys((root, *others.values())))
    result, document = models_json_schema([(model, "validation") for model in every], by_alias=False)
    definitions = {key: _tidied(value) for key, value in document["$defs"].items()}
    references = {name: result[model, "validation"] for name, model in others.items()}
    own = definitions.pop(result[root, "validation"]["$ref"].rpartition("/")[2])
    title = str(root.model_config.get("title"))
    return {"$schema": _DIALECT, "title": title, **own, "$defs": definitions}, references


def _tidied(schema: Any) -> Any:
    """`schema` open to references, without titles made of field names and without defaults of sections."""
    if isinstance(schema, list):
        return [_tidied(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    tidy = {
        key: inner if key in (*_ANNOTATIONS, "enum", "const", "required") else _tidied(inner)
        for key, inner in schema.items()
        if not (key == "title" and isinstance(inner, str))
        and not (key == "default" and isinstance(inner, dict))
    }
    is_fixed = tidy.get("type") in ("integer", "number", "boolean") or (
        isinstance(tidy.get("type"), str) and any(key in tidy for key in ("enum", "const", "pattern"))
    )
    if not is_fixed:
        return tidy
    outer = {key: tidy.pop(key) for key in _ANNOTATIONS if key in tidy}
    return {**outer, "anyOf": [tidy, _REFERENCE]}


def _add_camel_case(definition: JsonSchema) -> None:
    """Let the object that `definition` describes have each key in one of its two spellings."""
    properties = definition.get("properties", {})
    spellings = {key: to_camel(key) for key in properties if to_camel(key) != key}
    properties |= {camel: properties[key] for key, camel in spellings.items()}
    required = definition.pop("required", [])
    plain = [key for key in required if key not in spellings]
    either = [
        {"anyOf": [{"required": [key]}, {"required": [spellings[key]]}]}
        for key in required
        if key in spellings
    ]
    if spellings:
        definition["not"] = {"anyOf": [{"required": list(both)} for both in spellings.items()]}
    if plain:
        definition["required"] = plain
    if either:
        definition["allOf"] = either
