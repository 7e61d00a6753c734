"""Cases with results from reference packages: how one becomes an agent run and criteria."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1 import trace_pb2

from processors.agent_run import AgentIdentity, AgentRun, ToolCall
from processors.dialect import SpanRole
from processors.dialects.seed_tools import DIALECT
from processors.span import Span

PARITY = Path(__file__).parent.parent / "data" / "parity"

Case = dict[str, Any]


@cache
def load_cases(name: str) -> tuple[Case, ...]:
    """The cases of one file of `tests/data/parity`."""
    lines = (PARITY / f"{name}.jsonl").read_text("utf-8").splitlines()
    return tuple(json.loads(line) for line in lines)


def wanted(case: Case) -> Case:
    """What is wanted of this project: its own expectation where it departs from the package."""
    expected: Case = case.get("service_expected") or case["expected"]
    return expected


def run_of(case: Case) -> AgentRun:
    """The agent run whose tool spans are the spans of `case`."""
    calls = []
    for number, span in enumerate(case["spans"], start=2):
        attributes = [_attribute(key, value) for key, value in span["attributes"].items()]
        view = Span(trace_pb2.Span(name=span["name"], attributes=attributes).SerializeToString())
        if DIALECT.role(view) is not SpanRole.TOOL:
            continue
        reading = DIALECT.tool(view)
        if not reading.is_synthetic:
            calls.append(
                ToolCall(
                    name=reading.name,
                    call_id=reading.call_id if "tool.id" in span["attributes"] else None,
                    span_id=number.to_bytes(8),
                    category=reading.category,
                    arguments=reading.arguments.value,
                    arguments_text=reading.arguments.text,
                    arguments_state=reading.arguments.state,
                    result=reading.result.value,
                    result_text=reading.result.text,
                    result_state=reading.result.state,
                    lenient_values=reading.lenient_values,
                )
            )
    return AgentRun(
        trace_id=bytes(15) + b"\x01",
        span_id=None,
        agent=AgentIdentity(name=case["id"]),
        tool_calls=calls,
    )


def _attribute(key: str, value: object) -> KeyValue:
    return KeyValue(key=key, value=_any_value(value))


def _any_value(value: object) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, str):
        return AnyValue(string_value=value)
    if isinstance(value, Mapping):
        return AnyValue(
            kvlist_value=KeyValueList(values=[_attribute(key, member) for key, member in value.items()])
        )
    if isinstance(value, list):
        result = AnyValue()
        result.array_value.values.extend(_any_value(member) for member in value)
        return result
    return AnyValue()
