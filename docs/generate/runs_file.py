"""The page of the runs file, generated from the schema of a line."""

from collections.abc import Iterator

from processors.annotation import run_line_schema
from processors.model import JsonObject, JsonValue

_INTRODUCTION = """\
# The runs file

This page is generated from the schema of a line by `make reference`.

A file `*.runs.jsonl` holds one agent run a line, as JSON.
The service writes it (`exporters: {results_file: {path: verdicts.runs.jsonl}}`), `tracegrade replay
--format json` prints it, and `tracegrade replay` reads it back.
So yesterday's verdicts can be looked up by time, agent and attribute, graded again by other criteria, or
cut down to a test case; and a run can be written by hand:

```json
{"agent": {"name": "support_agent"}, "tool_calls": [{"name": "refund", "arguments": {"order": "A-18"}}]}
```

- Only the agent's name is required. `evaluations` are not read when a run is graded again.
- A key that is not there was not captured (`absent`); one that is there, with null too, was.
  `arguments_state` and its like state it explicitly: `present`, `absent`, `redacted`, `truncated` or
  `unparsed`.
- Ids that are left out are derived from file and line.
- The ending counts: in a folder `*.runs.jsonl` is read as runs and any other `*.jsonl` as OTLP requests. A
  single file of another ending, or the standard input (`-`), is recognised by its content; traces may be
  [in other forms](#traces-in-other-forms) too.
- `schema` numbers the form. Lines of all versions are read; a release may add keys, so pass over those that
  you do not know. [config/run.schema.json](../config/run.schema.json) is the schema for programs;
  `tracegrade schema run` prints it.
- The same objects stand as `run` in the tests of criteria files ([criteria.md](criteria.md)), and custom
  evaluators get them ([evaluators-custom.md](evaluators-custom.md)).

Verdicts that went through `results.content` or `results.redact` lack content, and their states show it; only
those that it could not change are reached again.

```console
jq -r '.evaluations[] | select(.outcome == "fail") | .explanation' verdicts.runs.jsonl
tracegrade replay --criteria new.yaml verdicts.runs.jsonl
```

## Traces in other forms

`tracegrade replay`, `learn` and `baseline` read traces as they lie around, each also in gzip or zstd:

| Form | Written by |
|---|---|
| OTLP requests of traces or logs: serialised (`*.binpb`), as JSON (`*.otlp.json`), a line each (`*.jsonl`), \
in an array | our `file` exporter, the Collector's |
| serialised requests, each behind its length | the Collector's, with `format: proto` or `compression: zstd` |
| a ResourceSpans or ResourceLogs a line | the logging exporter of OpenTelemetry Java |
| `batches`, `trace` | Tempo's API, and traces that Grafana downloads |
| `data` with `spans` and `processes`, `result` | Jaeger's API, and traces that its page downloads |
| OTLP with base64 ids and names for enum values | whatever prints the messages with a protobuf library |

In a folder only `*.binpb`, `*.otlp.json`, `*.jsonl` and `*.runs.jsonl` are read, with `.gz` or `.zst`
behind them too; a file that is named by itself may have any name.
A file that ends within a message, because its writer was stopped, is graded without that message, and a
warning reports it.
A file in none of these forms is refused with what it looks like.

Log records that carry content of agents are joined with their spans, in whatever order and files the two are
read: name both, or the folder that holds them. Any other log record is left out.
Coding agents that send log records alone, without a trace id (Claude Code without its tracing, Codex without
its `trace_exporter`, Qwen Code before 0.16), are graded from these: a run for each prompt, of Codex for each
conversation. Other log records without spans are nothing to grade.
"""


def runs_file_reference() -> str:
    """The page in Markdown."""
    schema = run_line_schema()
    definitions = schema["$defs"]
    objects = {name: part for name, part in definitions.items() if "properties" in part}
    sections = {"Run": schema, **objects}
    tables = [
        f"\n## {name}\n\n| Key | Value | Meaning |\n|---|---|---|\n{''.join(_rows(part, definitions))}"
        for name, part in sections.items()
    ]
    return _INTRODUCTION + "".join(tables)


def _rows(schema: JsonObject, definitions: JsonObject) -> Iterator[str]:
    properties, required = schema["properties"], schema.get("required")
    for key, part in properties.items() if isinstance(properties, dict) else ():
        if isinstance(part, dict):
            name = f"`{key}`" + (" (required)" if isinstance(required, list) and key in required else "")
            yield f"| {name} | {_kind(part, definitions)} | {part.get('description', '')} |\n"


def _kind(part: JsonValue, definitions: JsonObject) -> str:
    """What the value may be, in words; null only where it is not the same as leaving the key out."""
    if not isinstance(part, dict):
        return ""
    choices, words, items = part.get("anyOf"), part.get("enum"), part.get("items")
    if isinstance(choices, list):
        is_left_out = part.get("default", False) is None
        known = [choice for choice in choices if not (is_left_out and choice == {"type": "null"})]
        return " or ".join(_kind(choice, definitions) for choice in known)
    if isinstance(words, list):
        return ", ".join(f"`{word}`" for word in words)
    reference = part.get("$ref")
    if isinstance(reference, str):
        name = reference.rpartition("/")[2]
        target = definitions[name]
        is_object = isinstance(target, dict) and "properties" in target
        return f"[{name}](#{name.lower()})" if is_object else _kind(target, definitions)
    if items is not None:
        return f"list of {_kind(items, definitions)}"
    if part.get("format") == "date-time":
        return "time"
    if "pattern" in part:
        return "hexadecimal digits"
    return {"string": "text", "object": "object", "null": "null"}.get(
        str(part.get("type", "")), str(part.get("type", "any value"))
    )
