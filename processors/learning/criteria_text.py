"""What was learned as a criteria file, with the evidence in comments and the runs it came from as tests."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from processors.annotation import run_to_json
from processors.criteria import Evaluation, read_criteria, write_criteria, write_criteria_file
from processors.evaluate import evaluate_run
from processors.learning.learning import Learned
from processors.learning.rule import CONFIDENCE, PREFIX, comments_of
from processors.model import AgentRun, GradedRun, JsonObject, JsonValue, Outcome

COMMENT = "Learned:"
"""The comment above a learned evaluation begins with it."""

_MAX_TEST_CHARACTERS = 10_000
_IDENTITY = (
    "schema", "trace_id", "span_id", "carrier_span_id", "evaluations", "start_time", "end_time",
    "resource_attributes", "span_attributes", "tenant",
)  # fmt: skip
_CALL_IDENTITY = ("span_id", "arguments_text", "result_text", "start_time", "end_time")

TEST_PREFIX = "learned: "
"""The names of learned tests begin with it, and with the agent."""

Entries: TypeAlias = Sequence[JsonObject | str]


@dataclass(frozen=True, slots=True)
class LearnedText:
    """What was learned of one agent, as the writer of criteria files takes it: evaluations with comments."""

    entries: Entries
    tests: Sequence[JsonObject]


def learned_text(
    learned: Learned, reread: Callable[[JsonObject], AgentRun], *, in_shadow: bool = False
) -> LearnedText:
    """What stands in a criteria file of what was learned.

    `reread` gives the run of a line as tests of criteria read it.
    """
    entries: list[JsonObject | str] = []
    for evaluation in learned.evaluations:
        entries.append(f"{COMMENT} catches {evaluation.worth:.0%} of broken runs.")
        entries += comments_of(evaluation.rules)
        entries.append({**evaluation.entry, **({"stage": "shadow"} if in_shadow else {})})
    return LearnedText(entries, list(_tests(learned, entries, reread)))


def learned_file(learned: Mapping[str, LearnedText], tenant: str = "") -> str:
    """A criteria file with what was learned of each agent; `validate` accepts it."""
    heading = [
        f"Learned from good runs of {', '.join(learned)} with `tracegrade learn`.",
        "Behind each rule stands how many runs could show it; these keep it, so that it holds, with "
        f"{CONFIDENCE:.0%} confidence, in at least the share of runs that follows.",
        f"The evaluations that begin with {PREFIX} are its own: rename those that you change.",
    ]
    agents = {agent: text.entries for agent, text in learned.items()}
    tests = [test for text in learned.values() for test in text.tests]
    return write_criteria_file(agents, heading, tests=tests, tenant=tenant)


def _tests(
    learned: Learned, entries: Entries, reread: Callable[[JsonObject], AgentRun]
) -> Iterator[JsonObject]:
    (agent,) = read_criteria(write_criteria(learned.agent, entries), "", {}).agents
    runs = [
        *(("a good run", run, True) for run in learned.examples),
        *((broken.kind, broken.run, False) for broken in learned.broken_examples),
    ]
    for number, (name, run, is_good) in enumerate(runs, 1):
        title = f"{TEST_PREFIX}{learned.agent}: {name} ({number})"
        test = _test(title, run, agent.evaluations, reread, is_good=is_good)
        if test is not None:
            yield test


def _test(
    name: str,
    run: AgentRun,
    evaluations: Sequence[Evaluation],
    reread: Callable[[JsonObject], AgentRun],
    *,
    is_good: bool,
) -> JsonObject | None:
    """A test of criteria; None where a criteria file cannot hold the run, or what it holds is another run."""
    entry = _line_of(run)
    try:
        write_criteria_file({}, tests=[{"name": name, "run": entry}])
        results = evaluate_run(reread(entry), evaluations)
    except ValueError:
        return None
    failed = [result for result in results if result.outcome in (Outcome.FAIL, Outcome.ERROR)]
    expected = results if is_good else failed
    expect: JsonObject = {result.name: result.outcome.value for result in expected}
    if bool(failed) is is_good or not expect or len(str(entry)) > _MAX_TEST_CHARACTERS:
        return None
    return {"name": name, "run": entry, "expect": expect}


def _line_of(run: AgentRun) -> JsonObject:
    """The run as a line of a runs file, without what only this one run has."""
    line = run_to_json(GradedRun(run=run, results=()))
    calls = line.pop("tool_calls")
    assert isinstance(calls, list)
    kept = {key: value for key, value in line.items() if key not in _IDENTITY and value not in (None, [], {})}
    own: JsonObject = {"tool_calls": [_call_of(call) for call in calls if isinstance(call, dict)]}
    return {**kept, "agent": {"name": run.agent.name}, **own}


def _call_of(call: Mapping[str, JsonValue]) -> JsonObject:
    dropped = {*_CALL_IDENTITY, *(key for key, value in call.items() if value is None)}
    for key in ("arguments", "result"):
        state = f"{key}_state"
        if call[state] == "present":
            dropped = (dropped | {state}) - {key}
        else:
            dropped |= {key} if call[state] != "absent" else {key, state}
    if call.get("category") == "function":
        dropped.add("category")
    return {key: value for key, value in call.items() if key not in dropped}
