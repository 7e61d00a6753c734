"""A span as a trace backend gives it back, whatever its own interface calls the parts."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from processors.annotation import EVENT_NAME
from processors.model import JsonObject, JsonValue
from tests.support.backend_server import STORE_SECONDS


@dataclass(frozen=True)
class StoredEvent:
    """An event of a span."""

    name: str
    attributes: Mapping[str, JsonValue]


@dataclass(frozen=True)
class StoredSpan:
    """Ids are lower-case hex; `kind` is the backend's own word for what the span is."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    kind: str
    attributes: Mapping[str, JsonValue]
    events: Sequence[StoredEvent]


Verdicts = Mapping[tuple[str, str, str], tuple[JsonValue, JsonValue, JsonValue]]
"""By trace, span and name of the evaluation: label, score, explanation."""


def stored_verdicts(spans: Iterable[StoredSpan]) -> Verdicts:
    """The evaluation events of `spans`."""
    found = {}
    for span in spans:
        for event in span.events:
            if event.name == EVENT_NAME:
                told = event.attributes
                key = (span.trace_id, span.span_id, str(told["gen_ai.evaluation.name"]))
                assert key not in found, f"two events for {key}"
                found[key] = (
                    told["gen_ai.evaluation.score.label"],
                    told.get("gen_ai.evaluation.score.value"),
                    told.get("gen_ai.evaluation.explanation", ""),
                )
    return found


def graded_verdicts(results: Iterable[JsonObject]) -> Verdicts:
    """The same of graded runs as the service wrote them to a file, on the spans of the agents."""
    found = {}
    for run in results:
        evaluations = run["evaluations"]
        assert isinstance(evaluations, list)
        for evaluation in evaluations:
            assert isinstance(evaluation, dict)
            key = (str(run["trace_id"]), str(run["span_id"]), str(evaluation["name"]))
            found[key] = (evaluation["outcome"], evaluation["score"], evaluation["explanation"])
    return found


def by_trace(verdicts: Verdicts) -> list[tuple[str, str, JsonValue, JsonValue, JsonValue]]:
    """Verdicts by trace and name alone, sorted: a span of verdicts has another id than the agent's."""
    return sorted((trace, name, *told) for (trace, _, name), told in verdicts.items())


def span_keys(spans: Iterable[StoredSpan]) -> set[tuple[str, str]]:
    """Trace id and span id of each."""
    return {(span.trace_id, span.span_id) for span in spans}


async def wait_for_spans(
    read: Callable[[], Awaitable[list[StoredSpan]]], count: int, log_tail: Callable[[], str]
) -> list[StoredSpan]:
    """What `read` gives once these are `count` spans or more; fails with the backend's log."""
    spans: list[StoredSpan] = []
    try:
        async with asyncio.timeout(STORE_SECONDS):
            while len(spans := await read()) < count:
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise AssertionError(f"{len(spans)} of {count} spans are stored\n{log_tail()}") from None
    return spans
