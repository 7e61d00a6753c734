"""What is known of conversations is bounded, and what is not known is said."""

import pytest

from collector.conversations import MAX_CALLS, MAX_RUNS, Conversations, ConversationsConfig
from processors.model import AgentIdentity, AgentRun, Conversation, ToolCall

SECOND = 1_000_000_000
HOUR = 3600 * SECOND
NOW = 1_769_846_400 * SECOND


def _run(
    number: int, session: str | None = "s", *, at: int = NOW, text: str = "", tenant: str = ""
) -> AgentRun:
    return AgentRun(
        trace_id=number.to_bytes(16, "big"),
        span_id=number.to_bytes(8, "big"),
        agent=AgentIdentity(name="agent"),
        session=session,
        tenant=tenant,
        start_unix_nano=at,
        tool_calls=[ToolCall(name="call", arguments_text=text)],
    )


def _conversations(known_from: int = NOW - 2 * HOUR, **config: object) -> Conversations:
    found = Conversations(ConversationsConfig.model_validate(config))
    found.follow(True, known_from)
    found.open(known_from)
    return found


def _look(conversations: Conversations, run: AgentRun, at: int = 0) -> Conversation:
    (told,) = conversations.look_up([run], at or run.start_unix_nano)
    assert told.conversation is not None
    return told.conversation


def _numbers(known: Conversation) -> list[int]:
    return [int.from_bytes(run.trace_id, "big") for run in known.runs]


def test_runs_see_those_before_them_with_the_same_session_and_tenant() -> None:
    conversations = _conversations()

    found = [
        _look(conversations, run)
        for run in (_run(1), _run(2, "other"), _run(3, tenant="t"), _run(4), _run(5, at=NOW + HOUR))
    ]

    assert [[], [], [], [1], [1, 4]] == [_numbers(known) for known in found]
    assert {""} == {known.gap for known in found}


def test_runs_of_one_trace_see_each_other_and_none_is_there_twice() -> None:
    conversations = _conversations()
    first, second = conversations.look_up([_run(1), _run(2)], NOW)
    again = _look(conversations, _run(1))

    assert first.conversation is not None
    assert second.conversation is not None
    assert ([2], [1], [2]) == (_numbers(first.conversation), _numbers(second.conversation), _numbers(again))


def test_a_run_without_a_session_is_in_none() -> None:
    (run,) = _conversations().look_up([_run(1, None)], NOW)

    assert run.conversation is None


def test_what_is_kept_holds_no_spans() -> None:
    conversations = _conversations()
    run = _run(1)
    told = _look(conversations, run)
    (kept,) = _look(conversations, _run(2)).runs

    assert () == told.runs
    assert kept.content is None
    assert kept.conversation is None
    assert [*run.tool_calls] == [*kept.tool_calls]


@pytest.mark.parametrize(
    ("since_first_run", "is_known"), [(HOUR + SECOND, True), (HOUR, False), (SECOND, False), (-SECOND, False)]
)
def test_a_conversation_may_have_begun_before_it_was_looked_for(since_first_run: int, is_known: bool) -> None:
    known = _look(_conversations(NOW - since_first_run), _run(1))

    assert is_known == (not known.gap)
    assert is_known or known.gap.startswith("not all before 2026-")


def test_it_stays_unknown_however_long_it_goes_on() -> None:
    conversations = _conversations(NOW)
    _look(conversations, _run(1))

    assert _look(conversations, _run(2, at=NOW + 5 * HOUR)).gap
    assert not _look(conversations, _run(3, "new", at=NOW + 5 * HOUR)).gap


def test_spans_that_may_have_been_lost_leave_the_conversations_of_that_time_unknown() -> None:
    lost_until = 0
    conversations = Conversations(ConversationsConfig(), lost_until=lambda: lost_until)
    conversations.follow(True, NOW - 9 * HOUR)
    conversations.open(NOW - 9 * HOUR)
    before = _look(conversations, _run(1)).gap
    lost_until = NOW + SECOND

    assert ("", True) == (before, bool(_look(conversations, _run(2, at=NOW + HOUR)).gap))
    assert not _look(conversations, _run(3, "later", at=NOW + 2 * HOUR)).gap


def test_a_service_that_sees_a_part_says_so() -> None:
    conversations = Conversations(ConversationsConfig(), hidden="there are several replicas")
    conversations.follow(True, NOW - 9 * HOUR)
    conversations.open(NOW - 9 * HOUR)

    assert "there are several replicas" == _look(conversations, _run(1)).gap


@pytest.mark.parametrize("pause", [25 * HOUR, 200 * HOUR])
def test_one_that_was_forgotten_for_its_age_is_not_taken_for_a_new_one(pause: int) -> None:
    conversations = _conversations()
    _look(conversations, _run(1))
    _look(conversations, _run(2, "other", at=NOW + pause))

    known = _look(conversations, _run(3, at=NOW + pause))

    assert ([], "earlier ones are no longer kept") == (_numbers(known), known.gap)
    assert 2 == len(conversations)


def test_the_longest_quiet_make_room() -> None:
    conversations = _conversations(max_mib=1)
    for number in range(1, 6):
        _look(conversations, _run(number, f"s{number}", text="x" * 150_000))

    assert conversations.used_bytes <= 1 << 20
    assert 3 == len(conversations)
    assert ([3], "") == (_numbers(known := _look(conversations, _run(13, "s3"))), known.gap)
    assert ([], True) == (_numbers(known := _look(conversations, _run(11, "s1"))), bool(known.gap))


def test_a_long_one_loses_its_beginning_and_says_so() -> None:
    conversations = _conversations()
    for number in range(1, MAX_RUNS + 1):
        known = _look(conversations, _run(number, at=NOW + number))
    assert (MAX_RUNS - 1, "") == (len(known.runs), known.gap)

    known = _look(conversations, _run(MAX_RUNS + 1, at=NOW + MAX_RUNS + 1))

    assert (MAX_RUNS - 1, 2) == (len(known.runs), min(_numbers(known)))
    assert "earlier ones are no longer kept" == known.gap


def test_calls_are_bounded_as_well() -> None:
    conversations = _conversations()
    run = _run(1)
    run.__dict__["tool_calls"] = [ToolCall(name="call")] * MAX_CALLS
    _look(conversations, run)

    assert ([], "earlier ones are no longer kept") == (
        _numbers(known := _look(conversations, _run(2, at=NOW + 1))),
        known.gap,
    )


def test_when_no_criteria_ask_nothing_is_kept() -> None:
    conversations = _conversations()
    _look(conversations, _run(1))
    conversations.follow(False, NOW)

    assert (0, 0) == (len(conversations), conversations.used_bytes)
    conversations.follow(True, NOW + HOUR)
    assert _look(conversations, _run(2, at=NOW + HOUR + SECOND)).gap


def test_in_a_recording_everything_is_known() -> None:
    conversations = Conversations()
    for number in range(1, 3 * MAX_RUNS):
        known = _look(conversations, _run(number, at=number * 999 * HOUR))

    assert (3 * MAX_RUNS - 2, "") == (len(known.runs), known.gap)
