"""Tool-call evaluators beside those of the package whose semantics they keep, in one interleaved run.

Both sides grade the same runs by the same criteria with explanations, and have to come to the same scores.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from benchmarks.child_process import ChildProcess, MeasurementRefused
from benchmarks.micro import cpu_seconds_each
from collector.otlp import split_request
from processors.criteria import Evaluation, read_criteria
from processors.evaluate import evaluate_run
from processors.model import AgentIdentity, AgentRun, FinishReason, JsonObject, JsonValue, ValueState
from processors.reconstruction import reconstruct
from processors.spans import RawSpan

PACKAGE = "uipath==2.14.44"
_AGENT = "weather_agent"
_TRACE_ID = bytes(range(1, 17))
_TOOLS = ("get_temperature", "get_humidity", "get_wind", "get_pressure", "get_forecast")
_TEXT_LENGTH = 4_000
_SIMILARITY_GOAL = 0.001
_GOALS = {5: 10, 50: 30}
_TOLERANCE = 1e-9
_WORKER_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Case:
    """One evaluator with its criteria and the run that it grades, in the terms of both sides."""

    name: str
    reference_class: str
    evaluator: str
    config: JsonObject
    criteria: JsonObject
    spans: Sequence[dict[str, str]]
    output: JsonValue = ""

    def for_reference(self) -> JsonObject:
        """What the worker is told."""
        return {
            "class": self.reference_class,
            "config": {"name": self.name, **self.config},
            "criteria": self.criteria,
            "spans": [dict(span) for span in self.spans],
            "output": self.output,
        }

    def evaluation(self) -> Evaluation:
        """The evaluation as a criteria file gives it."""
        entry: JsonObject = {"evaluator": self.evaluator, "config": self.config, "criteria": self.criteria}
        text = json.dumps({"agents": {_AGENT: {"evaluations": [entry]}}})
        return read_criteria(text, "criteria.yaml", {}).agents[0].evaluations[0]

    def run(self) -> AgentRun:
        """The run, read from its spans where there are any."""
        if self.spans:
            return read_run(raw_spans(self.spans))
        return AgentRun(
            trace_id=_TRACE_ID,
            span_id=None,
            agent=AgentIdentity(name=_AGENT),
            output=self.output,
            output_state=ValueState.PRESENT,
        )


def tool_spans(calls: int) -> list[dict[str, str]]:
    """The attributes of tool spans: name, arguments and result of each call."""
    return [
        {
            "tool.name": _TOOLS[index % len(_TOOLS)],
            "input.value": json.dumps({"city": f"City {index}", "days": index, "unit": "metric"}),
            "output.value": json.dumps({"content": f"reading number {index}"}),
        }
        for index in range(calls)
    ]


def tool_call_cases(calls: int) -> list[Case]:
    """The four evaluators of tool calls over a run of which every fifth call is not as expected."""
    spans = tool_spans(calls)
    names = [span["tool.name"] for span in spans]
    arguments: list[JsonObject] = [
        {"name": name, "args": {"city": f"City {index}", "days": -1 if index % 5 == 4 else index}}
        for index, name in enumerate(names)
    ]
    outputs: list[JsonObject] = [
        {"name": name, "output": "another reading" if index % 5 == 4 else f"reading number {index}"}
        for index, name in enumerate(names)
    ]
    order = [*names[: calls // 2], "get_alerts", *names[calls // 2 :]]
    counts = {name: ["=" if index else ">", names.count(name)] for index, name in enumerate(_TOOLS)}
    criteria: list[tuple[str, JsonObject, JsonObject]] = [
        ("count", {}, {"tool_calls_count": {name: list(count) for name, count in counts.items()}}),
        ("order", {}, {"tool_calls_order": [*order]}),
        ("args", {"subset": True}, {"tool_calls": [*arguments]}),
        ("output", {}, {"tool_outputs": [*outputs]}),
    ]
    return [
        Case(
            name=f"tool-call-{kind}",
            reference_class=f"ToolCall{kind.capitalize()}Evaluator",
            evaluator=f"tool-call-{kind}",
            config=config,
            criteria=expected,
            spans=spans,
        )
        for kind, config, expected in criteria
    ]


def similarity_case() -> Case:
    """Two texts of 4,000 characters that differ in every seventh."""
    expected = "".join(chr(97 + index * 7 % 26) for index in range(_TEXT_LENGTH))
    actual = "".join("#" if index % 7 == 0 else letter for index, letter in enumerate(expected))
    return Case(
        name="json-similarity",
        reference_class="JsonSimilarityEvaluator",
        evaluator="json-similarity",
        config={},
        criteria={"expected_output": {"text": expected}},
        spans=(),
        output={"text": actual},
    )


def raw_spans(spans: Sequence[dict[str, str]]) -> list[RawSpan]:
    """The tool spans below a root span, as an exporter would have sent them."""
    request = ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add()
    resource_spans.resource.attributes.add(key="service.name").value.string_value = _AGENT
    found = resource_spans.scope_spans.add().spans
    root = b"\xff" * 8
    found.add(trace_id=_TRACE_ID, span_id=root, name="main", start_time_unix_nano=1, end_time_unix_nano=10**9)
    for index, attributes in enumerate(spans, start=1):
        span = found.add(
            trace_id=_TRACE_ID,
            span_id=index.to_bytes(8, "big"),
            parent_span_id=root,
            name=attributes["tool.name"],
            start_time_unix_nano=index * 1_000,
            end_time_unix_nano=index * 1_000 + 500,
        )
        for key, value in attributes.items():
            span.attributes.add(key=key).value.string_value = value
    return split_request(request.SerializeToString()).traces[_TRACE_ID]


def read_run(spans: Sequence[RawSpan]) -> AgentRun:
    """The one run in `spans`."""
    [run] = reconstruct(spans, trace_id=_TRACE_ID, reason=FinishReason.ROOT)
    return run


def compare(python: str, *, rounds: int, seconds: float) -> Iterator[str]:
    """Measure everything, both sides in turn, and yield a line for each figure.

    Raises:
        MeasurementRefused: the package cannot be run, or the scores differ.
    """
    yield f"# CPU time of one evaluation with its explanation: {PACKAGE}, tracegrade"
    cases = [case for calls in _GOALS for case in tool_call_cases(calls)]
    cases.append(similarity_case())
    script = Path(__file__).with_name("reference_worker.py")
    with ChildProcess("reference", [python, str(script)]) as worker:
        try:
            worker.ready(_WORKER_SECONDS)
        except MeasurementRefused as refusal:
            raise MeasurementRefused(
                f"{python}: is {PACKAGE} installed there (make bench-install)? {refusal}"
            ) from None
        worker.ask(json.dumps([case.for_reference() for case in cases]), _WORKER_SECONDS)
        theirs, ours = _measured(worker, cases, rounds, seconds)
    per_size = len(cases) // len(_GOALS)
    for position, (calls, goal) in enumerate(_GOALS.items()):
        chosen = range(position * per_size, (position + 1) * per_size)
        for index in chosen:
            yield _line(f"{cases[index].name}, {calls} calls", theirs[index], ours[index])
        spans = raw_spans(tool_spans(calls))
        reading = [cpu_seconds_each(lambda: read_run(spans), seconds) for _ in range(rounds)]  # noqa: B023
        yield _line(
            f"all four, {calls} calls",
            [sum(theirs[index][turn] for index in chosen) for turn in range(rounds)],
            [sum(ours[index][turn] for index in chosen) for turn in range(rounds)],
            goal,
        )
        yield _line(
            f"all four and reading the spans, {calls} calls",
            [sum(theirs[index][turn] for index in chosen) for turn in range(rounds)],
            [reading[turn] + sum(ours[index][turn] for index in chosen) for turn in range(rounds)],
        )
    similarity = median(ours[-1])
    yield _line(f"json-similarity, {_TEXT_LENGTH:,} characters", theirs[-1], ours[-1])
    yield (
        f"json-similarity, {_TEXT_LENGTH:,} characters: goal {_SIMILARITY_GOAL * 1e3:g} ms: "
        f"{'met' if similarity < _SIMILARITY_GOAL else 'MISSED'}"
    )


def _measured(
    worker: ChildProcess, cases: Sequence[Case], rounds: int, seconds: float
) -> tuple[list[list[float]], list[list[float]]]:
    evaluations = [case.evaluation() for case in cases]
    runs = [case.run() for case in cases]
    theirs: list[list[float]] = [[] for _ in cases]
    ours: list[list[float]] = [[] for _ in cases]
    answers: list[tuple[float, float]] = [(0.0, 0.0)] * len(cases)
    for turn in range(rounds + 1):
        for index, case in enumerate(cases):
            if not turn or case.spans:  # once is enough for a similarity, which takes the package seconds
                answers[index] = json.loads(worker.ask(json.dumps([index, seconds]), _WORKER_SECONDS))
            their_seconds, their_score = answers[index]
            chosen = [evaluations[index]]
            run = runs[index]
            [result] = evaluate_run(run, chosen)
            if result.score is None or abs(result.score - their_score) > _TOLERANCE:
                raise MeasurementRefused(f"{case.name}: {result.score}, the package {their_score}")
            our_seconds = cpu_seconds_each(lambda: evaluate_run(run, chosen), seconds)  # noqa: B023
            if turn:  # the first one warms up
                theirs[index].append(their_seconds)
                ours[index].append(our_seconds)
    return theirs, ours


def _line(name: str, theirs: Sequence[float], ours: Sequence[float], goal: int | None = None) -> str:
    ratios = [their / our for their, our in zip(theirs, ours, strict=True)]
    ratio = median(ratios)
    verdict = "" if goal is None else f"  goal {goal}: {'met' if ratio >= goal else 'MISSED'}"
    return (
        f"{name:<48} {median(theirs) * 1e6:>12,.1f} us  {median(ours) * 1e6:>9,.1f} us  "
        f"ratio {ratio:,.1f} [{min(ratios):,.1f}-{max(ratios):,.1f}]{verdict}"
    )
