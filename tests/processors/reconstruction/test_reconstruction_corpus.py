"""Recordings of real frameworks against what their tools wrote down while they ran."""

import json
from collections import Counter
from functools import cache
from typing import Any

import pytest

from collector.otlp.codec import split_request
from processors.model.agent_run import AgentRun, CallCategory, ToolCall, ValueState
from processors.model.finish_reason import FinishReason
from processors.model.json_values import JsonValue
from processors.reconstruction.passes import reconstruct
from processors.spans.span import RawSpan
from tests.support.corpus import CORPUS

FRAMEWORKS = (
    "agent-framework",
    "agentscope",
    "ai-sdk-6",
    "ai-sdk-7",
    "ai-sdk-7-legacy",
    "autogen",
    "openinference_langchain",
    "openinference_openai_agents",
    "pydantic_ai",
    "uipath_style",
)
SCENARIOS = [
    f"{framework}/{folder.name}"
    for framework in FRAMEWORKS
    for folder in sorted((CORPUS / framework).iterdir())
]
EXCEPTIONS: dict[str, dict[str, str]] = json.loads(
    (CORPUS.parent / "corpus_exceptions.json").read_text("utf-8")
)
"""What recordings cannot show, each with its reason."""


@cache
def traces_of(scenario: str) -> dict[bytes, list[RawSpan]]:
    traces: dict[bytes, list[RawSpan]] = {}
    for path in sorted((CORPUS / scenario).glob("*.binpb")):
        for trace_id, spans in split_request(path.read_bytes()).traces.items():
            traces.setdefault(trace_id, []).extend(spans)
    return traces


def runs_in(scenario: str, trace_id: bytes) -> list[AgentRun]:
    return reconstruct(traces_of(scenario)[trace_id], trace_id=trace_id, reason=FinishReason.ROOT)


def truth(scenario: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((CORPUS / scenario / "expected.json").read_text("utf-8"))
    return content


def agents_of(scenario: str) -> list[tuple[AgentRun, dict[str, Any]]]:
    """Each agent that really ran with the run that was rebuilt for it."""
    pairs = []
    for trace in truth(scenario)["traces"]:
        runs = {run.agent.name: run for run in runs_in(scenario, bytes.fromhex(trace["trace_id_hex"]))}
        assert {agent["name"] for agent in trace["agents"]} == runs.keys()
        pairs += [(runs[agent["name"]], agent) for agent in trace["agents"]]
    return pairs


def canonical(value: JsonValue) -> str:
    return json.dumps(value, sort_keys=True)


def unwrapped(value: Any) -> Any:
    """A result outside the `content` wrapper that some tools put around it."""
    return value["content"] if isinstance(value, dict) and value.keys() == {"content"} else value


def captured(scenario: str) -> bool:
    told = truth(scenario)
    return bool(told["content_capture"]) and told.get("content_capture_mode", "full") == "full"


class Tally:
    """How much of what really happened was rebuilt in the recordings of one framework."""

    def __init__(self) -> None:
        self.recordings = self.agents = 0
        self.told: Counter[str] = Counter()
        self.found: Counter[str] = Counter()

    def add(self, scenario: str) -> None:
        self.recordings += 1
        for run, agent in agents_of(scenario):
            self.agents += 1
            calls = agent["tool_calls"]
            self._count("calls", [call["name"] for call in calls], [call.name for call in run.tool_calls])
            self._count(
                "errors",
                [(call["name"], call["error"] is not None) for call in calls],
                [(call.name, call.error is not None) for call in run.tool_calls],
            )
            if captured(scenario):
                self._count(
                    "values",
                    [(call["name"], canonical(call["args"])) for call in calls],
                    [(call.name, canonical(call.arguments)) for call in run.tool_calls],
                )
                self._count(
                    "values",
                    [canonical(unwrapped(call["output"])) for call in calls if call["error"] is None],
                    [canonical(call.result) for call in run.tool_calls if call.error is None],
                )

    def _count(self, what: str, told: list[Any], found: list[Any]) -> None:
        # What was found and never happened counts against the share as well.
        self.told[what] += max(len(told), len(found))
        self.found[what] += (Counter(told) & Counter(found)).total()

    def share(self, what: str) -> str:
        """The share in percent, rounded down; a dash where nothing was to be found."""
        return f"{100 * self.found[what] // self.told[what]}%" if self.told[what] else "-"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_call_is_rebuilt_with_its_turn_in_order(scenario: str) -> None:
    for run, agent in agents_of(scenario):
        by_turn: dict[int, list[str]] = {}
        for call in sorted(agent["tool_calls"], key=lambda call: call["order"]):
            by_turn.setdefault(call["turn"], []).append(call["name"])

        position = 0
        for names in by_turn.values():
            turn = run.tool_calls[position : position + len(names)]
            assert Counter(names) == Counter(call.name for call in turn)
            if len(names) > 1:
                assert 1 == len({call.parallel_group for call in turn})
                assert turn[0].parallel_group is not None
            position += len(names)
        assert position == len(run.tool_calls)


@pytest.mark.parametrize("scenario", [scenario for scenario in SCENARIOS if captured(scenario)])
def test_arguments_and_results_are_what_the_functions_got_and_returned(scenario: str) -> None:
    for run, agent in agents_of(scenario):
        wanted = Counter(
            (
                call["name"],
                canonical(call["args"]),
                None if call["error"] is not None else canonical(unwrapped(call["output"])),
            )
            for call in agent["tool_calls"]
        )

        assert wanted == Counter(
            (call.name, canonical(call.arguments), None if call.error is not None else canonical(call.result))
            for call in run.tool_calls
        )
        assert all(call.arguments_state is ValueState.PRESENT for call in run.tool_calls)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_failed_calls_are_errors_and_no_others(scenario: str) -> None:
    for run, agent in agents_of(scenario):
        wanted = Counter(
            (call["name"], call["error"]) for call in agent["tool_calls"] if call["error"] is not None
        )
        found = Counter((call.name, call.error.message) for call in run.tool_calls if call.error is not None)

        if scenario in EXCEPTIONS["errors_without_message"] or not captured(scenario):
            assert Counter(name for name, _ in wanted.elements()) == Counter(
                name for name, _ in found.elements()
            )
        else:
            assert wanted == found


@pytest.mark.parametrize("scenario", [scenario for scenario in SCENARIOS if captured(scenario)])
def test_input_and_output_are_what_was_asked_and_answered(scenario: str) -> None:
    for run, agent in agents_of(scenario):
        assert agent["final_output"] == run.output
        assert ValueState.PRESENT is run.output_state
    for trace in truth(scenario)["traces"]:
        root = next(run for run, agent in agents_of(scenario) if agent["name"] == trace["root_agent"])
        is_object = scenario in EXCEPTIONS["inputs_as_objects"]
        asked = {"message": trace["prompt"]} if is_object else trace["prompt"]
        assert asked == root.input


@pytest.mark.parametrize("scenario", [scenario for scenario in SCENARIOS if not captured(scenario)])
def test_no_value_is_invented_where_content_was_not_captured(scenario: str) -> None:
    for run, _ in agents_of(scenario):
        assert ValueState.ABSENT is run.output_state
        assert all(call.arguments_state is not ValueState.PRESENT for call in run.tool_calls)
        assert all(call.arguments is None and call.result is None for call in run.tool_calls)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_runs_are_complete_and_calls_are_of_the_kind_they_were(scenario: str) -> None:
    kinds = {"function": {CallCategory.FUNCTION, CallCategory.MCP}, "agent": {CallCategory.AGENT}}

    for run, agent in agents_of(scenario):
        assert run.complete
        for call in run.tool_calls:
            told = next(entry["kind"] for entry in agent["tool_calls"] if entry["name"] == call.name)
            assert call.category in kinds[told]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_traces_without_an_agent_have_no_run(scenario: str) -> None:
    with_agents = {trace["trace_id_hex"] for trace in truth(scenario)["traces"]}

    for trace_id in traces_of(scenario):
        if trace_id.hex() not in with_agents:
            assert [] == runs_in(scenario, trace_id)


def test_no_call_of_one_run_is_found_in_another() -> None:
    seen: Counter[bytes] = Counter()
    for scenario in SCENARIOS:
        for trace_id in traces_of(scenario):
            calls: list[ToolCall] = [call for run in runs_in(scenario, trace_id) for call in run.tool_calls]
            seen.update(trace_id + call.span_id for call in calls if call.span_id is not None)

    assert {1} == set(seen.values())


def test_every_exception_is_of_a_recording_and_has_a_reason() -> None:
    for recordings in EXCEPTIONS.values():
        assert recordings.keys() <= set(SCENARIOS)
        assert all(reason.endswith(".") for reason in recordings.values())


def test_each_framework_is_rebuilt_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {framework: Tally() for framework in FRAMEWORKS}
    for scenario in SCENARIOS:
        rows[scenario.partition("/")[0]].add(scenario)

    with capsys.disabled():
        print(f"\n{'framework':<30}{'recordings':>11}{'agents':>8}{'calls':>7}{'values':>8}{'errors':>8}")
        for framework, tally in rows.items():
            print(
                f"{framework:<30}{tally.recordings:>11}{tally.agents:>8}{tally.share('calls'):>7}"
                f"{tally.share('values'):>8}{tally.share('errors'):>8}"
            )
    assert {
        framework: ("100%", "100%" if tally.told["values"] else "-", "100%")
        for framework, tally in rows.items()
    } == {
        framework: (tally.share("calls"), tally.share("values"), tally.share("errors"))
        for framework, tally in rows.items()
    }
