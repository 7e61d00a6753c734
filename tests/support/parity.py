"""Cases with results from reference packages: how one becomes an agent run and criteria."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1 import trace_pb2

from processors.model import AgentRun, FinishReason
from processors.reconstruction import reconstruct
from processors.spans.envelope import NO_ENVELOPE

PARITY = Path(__file__).parent.parent / "data" / "parity"

Case = dict[str, Any]

_TRACE_ID = bytes(15) + b"\x01"
_AGENT_SPAN_ID = bytes(7) + b"\x01"


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
    """The run of the agent named by the case's id, with the case's spans as its children."""
    spans = [
        trace_pb2.Span(
            trace_id=_TRACE_ID,
            span_id=_AGENT_SPAN_ID,
            name=case["id"],
            start_time_unix_nano=1,
            end_time_unix_nano=10**12,
            attributes=[
                _attribute("openinference.span.kind", "AGENT"),
                _attribute("agent.name", case["id"]),
            ],
        )
    ]
    for number, span in enumerate(case["spans"], start=2):
        spans.append(
            trace_pb2.Span(
                trace_id=_TRACE_ID,
                span_id=number.to_bytes(8, "big"),
                parent_span_id=_AGENT_SPAN_ID,
                name=span["name"],
                start_time_unix_nano=span["start_time_unix_nano"] + 1000,
                end_time_unix_nano=span["end_time_unix_nano"] + 1000,
                attributes=[_attribute(key, value) for key, value in span["attributes"].items()],
            )
        )
    raw = [(span.span_id, span.SerializeToString(), NO_ENVELOPE) for span in spans]
    (run,) = reconstruct(raw, trace_id=_TRACE_ID, reason=FinishReason.ROOT)
    return run


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
