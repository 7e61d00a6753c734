"""The page of evaluators, generated from their classes.

The docstring of a class is printed as it stands; its example, from `evaluator_examples.yaml`, is graded and
the result printed.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import getdoc
from pathlib import Path
from textwrap import indent

import yaml
from pydantic import BaseModel

from collector.criteria import run_criteria_tests
from docs.generate.recipes import Recipe, read_recipes
from processors.annotation import run_from_json, run_to_json
from processors.criteria import CriteriaDocument, CriteriaSet, evaluator_types, read_criteria
from processors.documents import InvalidInput
from processors.evaluate import evaluate_run
from processors.model import Evaluator, GradedRun, JsonObject, JsonValue
from processors.response_handling import RULES

_INTRODUCTION = """\
# Evaluators

This page is generated from `processors/evaluators/` by `make reference`.
[criteria.md](criteria.md) describes how evaluations are written for agents.

- Every evaluator is a pure function of one agent run: no model, no clock, no network.
  The same run gets the same score everywhere: in the service, in `tracegrade replay` and in tests.
- A score lies between 0 and 1. The outcome is `pass` from `pass_threshold` (1 if left out) on, else `fail`.
- Where a value decides that was not captured, is redacted or cut off, the outcome is `not_evaluated` with the
  reason `content_not_captured`; where criteria do not fit what the run holds, it is `error`.
  Neither has a score. An output that does not have `target_output_key` is such an error.
- A trace that was cut short passes or fails only where no further span could change the outcome.
- A failed call counts as a call, unless `include_failed: false` leaves it out.
- Where calls are compared with expected ones (`tool-call-*`, `trajectory-*`), an empty expectation scores 1
  without calls and 0 with calls; without calls every other expectation scores 0.
- Evaluators that do not look at calls (output, time, tokens, cost, models, errors) grade a run without calls
  as any other.
- A call that a model requested and that was never executed (the tool does not exist, it was refused, a limit
  was reached) is a call of the agent: every evaluator sees it, at its place among the others.
  It counts as a failed call does (`include_failed: false` leaves it out) and took no effect.
  Printed runs mark it `not executed`; run lines have it in `requested_calls`, or in `tool_calls` with
  `executed: false` where all calls are read from messages.
- A call that waits for a person or another process is `pending`, one that was refused is `denied`
  (`decision` in run lines, with the framework's word in `decision_source`; printed runs say
  `pending (ApprovalRequired)`). It is a call of the agent that was not executed, so the line above
  holds for it, with this difference: it is no failure (`tool-error-recovery`, `tool-response-handling`), and
  as a guard it precedes nothing that was done (`tool-precedence`, `tool-constraints`). While a call is
  pending no answer is due: evaluators of the output are `not_evaluated`, `not_applicable`.
  Over a conversation a call that waited and the later call with its id and tool are one, and the later stays.
- A call took effect unless it carries an error, its result reads like one (an `error` member, a `status_code`
  of 400 and more, a text that begins with "error", and their kin: `looks_failed` in
  `processors.comparison.captured_value`) or it was never executed. All evaluators that depend on it mean the
  same: `tool-constraints`, `tool-precedence`, `duplicate-side-effect`. `include_failed: false` does not look
  at results.
- Each example below is a whole criteria file: `tracegrade validate FILE` runs the test in it.
  The result under it is what that run gets, as `tracegrade replay --format json` prints it, without what the
  criteria already specify (severity, threshold, versions).

| Evaluator | What it reports | Criteria |
|---|---|---|
"""
_AGENT = "my_agent"
_SAID_BY_CRITERIA = ("severity", "pass_threshold", "evaluator_version", "criteria_hash")
_SOURCE_TREE = Path(__file__).parents[2]
_EXAMPLES = Path(__file__).with_name("evaluator_examples.yaml")
_MODULE = re.compile(r"`processors\.([a-z_.]+)`")


def evaluators_reference() -> str:
    """The page in Markdown, with an index from what people want to the evaluators that check it.

    Raises:
        InvalidInput: an example or a recipe is not valid.
    """
    evaluators = evaluator_types().values()
    table = "".join(_row(evaluator) for evaluator in evaluators)
    sections = "".join(_section(evaluator) for evaluator in evaluators)
    return _INTRODUCTION + table + _index(read_recipes()) + sections + _checks()


@dataclass(frozen=True, slots=True)
class EvaluatorExample:
    """An evaluation and a run that it grades, in YAML as the file has them, and what the score shows."""

    text: str
    run: str
    evaluation: str = ""


@cache
def examples() -> dict[str, EvaluatorExample]:
    """The examples by the id of their evaluator."""
    written = yaml.safe_load(_EXAMPLES.read_text(encoding="utf-8"))
    return {
        name: EvaluatorExample(**{key: text.rstrip() for key, text in parts.items()})
        for name, parts in written.items()
    }


def example_of(evaluator: type[Evaluator]) -> EvaluatorExample:
    """The example of an evaluator; raises LookupError where there is none."""
    if evaluator.id not in examples():
        raise LookupError(f"{evaluator.id}: expected an example in {_EXAMPLES.name}")
    return examples()[evaluator.id]


def example_file(evaluator: type[Evaluator], expected: str = "pass") -> str:
    """The example of an evaluator as a criteria file with a test that expects `expected`, written in YAML."""
    example = example_of(evaluator)
    evaluation = indent(f"evaluator: {evaluator.id}\n{example.evaluation}", " " * 8).strip()
    return (
        f"agents:\n  {_AGENT}:\n    evaluations:\n      - {evaluation}\n"
        f"tests:\n  - name: example\n    run:\n      agent: {{name: {_AGENT}}}\n"
        f"{indent(example.run, ' ' * 6)}\n    expect:\n      {evaluator.id}: {expected}\n"
    )


def graded_example(evaluator: type[Evaluator]) -> GradedRun:
    """The example run of an evaluator with the one result that it gets.

    Raises:
        InvalidInput: the example is not valid.
        ValueError: its run cannot be read.
    """
    document = _read(evaluator, example_file(evaluator))
    run = run_from_json(document.cases[0].run, f"the example of {evaluator.id}")
    return GradedRun(run=run, results=evaluate_run(run, CriteriaSet(document.agents).evaluations_for(_AGENT)))


def _read(evaluator: type[Evaluator], text: str) -> CriteriaDocument:
    return read_criteria(text, f"the example of {evaluator.id}", {})


def _index(recipes: Sequence[Recipe]) -> str:
    rows = ""
    for recipe in recipes:
        document = read_criteria(recipe.criteria, f'the recipe "{recipe.intent}"', {})
        used = dict.fromkeys(item.evaluator.id for agent in document.agents for item in agent.evaluations)
        links = ", ".join(f"[`{name}`](#{name})" for name in used)
        rows += f"| [{recipe.intent}]({recipe.page}#{recipe.anchor}) | {links} |\n"
    return f"\n## By intent\n\n| What you want | Evaluator |\n|---|---|\n{rows}"


def _row(evaluator: type[Evaluator]) -> str:
    first = _linked((getdoc(evaluator) or "").partition("\n")[0])
    criteria = "none" if evaluator.Criteria is None else "optional" if _is_optional(evaluator) else "required"
    return f"| [`{evaluator.id}`](#{evaluator.id}) | {first} | {criteria} |\n"


def _is_optional(evaluator: type[Evaluator]) -> bool:
    schema = evaluator.Criteria.model_json_schema() if evaluator.Criteria else {}
    try:
        _read(evaluator, f"agents: {{{_AGENT}: {{evaluations: [{{evaluator: {evaluator.id}}}]}}}}")
    except InvalidInput:
        return False
    return not schema.get("required")


def _section(evaluator: type[Evaluator]) -> str:
    graded = graded_example(evaluator)
    result = graded.results[0]
    score = "" if result.score is None else f", score: {result.score:.9g}"
    text = example_file(evaluator, f"{{outcome: {result.outcome}{score}}}")
    document = _read(evaluator, text)
    problems = run_criteria_tests(document.cases, CriteriaSet(document.agents))
    if problems:
        raise InvalidInput(problems)
    settings = "".join(
        _settings(heading, model)
        for heading, model in (("`config`", evaluator.Config), ("`criteria`", evaluator.Criteria))
        if model is not None
    )
    return (
        f"\n## {evaluator.id}\n\n{_linked(getdoc(evaluator) or '')}\n\n"
        f"Example: {example_of(evaluator).text}\n{settings}\n"
        f"```yaml\n{text}```\n\n```json\n{_result(graded)}\n```\n"
    )


def _checks() -> str:
    """The rules by which responses are graded, by the ids that criteria and explanations name."""
    rows = "".join(
        f"| {rule.id} | {rule.finds} | {'content' if rule.reads_content else 'calls'} | "
        f"{'yes' if rule.is_gating else 'no'} | {rule.right} : {rule.wrong} | {rule.stability} |\n"
        for rule in RULES
    )
    return (
        "\n## Rules of tool-response-handling\n\n"
        "A rule that needs content applies only where the input, the answer and all results are known.\n"
        "How they were judged, and what none of them sees, stands in [response-handling.md](response-handling.md).\n"  # noqa: E501
        "Right and wrong are findings on runs of real models that were read by hand.\n\n"
        "| Rule | What it finds | Needs | Gates if left out | Right : wrong | Stability |\n"
        f"|---|---|---|---|---|---|\n{rows}"
    )


def _linked(text: str) -> str:
    """`text` with the modules that it names as links to their sources; keys of the service file stay."""

    def link(module: re.Match[str]) -> str:
        source = f"processors/{module.group(1).replace('.', '/')}.py"
        return f"[{module.group()}](../{source})" if (_SOURCE_TREE / source).exists() else module.group()

    return _MODULE.sub(link, text)


def _settings(heading: str, model: type[BaseModel]) -> str:
    schema: JsonObject = model.model_json_schema(by_alias=False)
    rows = "".join(_setting_rows(schema, schema.get("$defs"), "", set()))
    return rows and f"\n| {heading} | If left out | Meaning |\n|---|---|---|\n{rows}"


def _setting_rows(schema: JsonObject, definitions: JsonValue, prefix: str, seen: set[int]) -> Iterator[str]:
    """The rows of the settings in `schema`; those of an object that is in `seen` are left out."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return
    for name, entry in properties.items():
        if not isinstance(entry, dict):
            continue
        if isinstance(required, list) and name in required:
            left_out = "required"
        elif entry.get("default") is None:
            left_out = ""
        else:
            left_out = f"`{json.dumps(entry['default'])}`"
        key = prefix + name
        yield f"| `{key}` | {left_out} | {_cell(_meaning(entry, definitions))} |\n"
        for path, nested in _nested(entry, definitions):
            if id(nested) not in seen:
                seen.add(id(nested))
                yield from _setting_rows(nested, definitions, f"{key}{path}.", seen)


def _meaning(entry: JsonObject, definitions: JsonValue) -> str:
    text = str(entry.get("description", ""))
    choices = _choices(entry, definitions)
    if choices:
        text += f" One of {', '.join(f'`{json.dumps(choice)}`' for choice in choices)}."
    examples = entry.get("examples")
    if isinstance(examples, list) and examples:
        text += f" Such as {' or '.join(f'`{json.dumps(example)}`' for example in examples)}."
    return text


def _choices(entry: JsonObject, definitions: JsonValue) -> list[JsonValue]:
    """The values that a setting, or each of its members, has to be one of; none: any will do."""
    choices = entry.get("enum")
    if isinstance(choices, list):
        return choices
    inner = _referenced(entry, definitions) or entry.get("items")
    return _choices(inner, definitions) if isinstance(inner, dict) else []


def _referenced(entry: JsonObject, definitions: JsonValue) -> JsonValue:
    """What the entry refers to, if it does."""
    reference = entry.get("$ref")
    if isinstance(reference, str) and isinstance(definitions, dict):
        return definitions.get(reference.rpartition("/")[2])
    return None


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _nested(entry: JsonObject, definitions: JsonValue, path: str = "") -> Iterator[tuple[str, JsonObject]]:
    """The objects with settings of their own that a setting holds, and where in it."""
    referenced = _referenced(entry, definitions)
    if isinstance(referenced, dict) and "properties" in referenced:
        yield path, referenced
    choices = entry.get("anyOf")
    for choice in choices if isinstance(choices, list) else []:
        if isinstance(choice, dict):
            yield from _nested(choice, definitions, path)
    for keyword, step in (("items", "[]"), ("additionalProperties", ".*")):
        inner = entry.get(keyword)
        if isinstance(inner, dict):
            yield from _nested(inner, definitions, path + step)


def _result(graded: GradedRun) -> str:
    """The one result of a run as JSON, a line for each key."""
    results = run_to_json(graded)["evaluations"]
    result = results[0] if isinstance(results, list) else None
    if not isinstance(result, dict):
        raise TypeError("a result that is printed as an object")
    lines = [
        f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in result.items()
        if key not in _SAID_BY_CRITERIA
    ]
    return "{\n" + ",\n".join(lines) + "\n}"
