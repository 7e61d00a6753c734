"""Requests in models' answers, and the results that later messages carry for them."""

from collections.abc import Sequence
from functools import partial

import pytest

from processors.reconstruction.requested_calls import RequestedCalls
from processors.shapes.dialect import Conversation
from processors.shapes.messages import CallRequest, CallResponse, ChatMessage

USER = ChatMessage("user", "Weather?")
ANSWER = ChatMessage("assistant", "Cold.")


def asks(*names: str, ids: Sequence[str] = ()) -> ChatMessage:
    """A message that asks for a call of each name."""
    ids = ids or [""] * len(names)
    requests = [CallRequest(name, call_id) for name, call_id in zip(names, ids, strict=True)]
    return ChatMessage("assistant", "", requests)


def tells(*contents: str, names: Sequence[str] = (), ids: Sequence[str] = ()) -> list[ChatMessage]:
    """A message with the result of one call for each content."""
    names, ids = names or [""] * len(contents), ids or [""] * len(contents)
    return [
        ChatMessage("tool", content, responses=[CallResponse(call_id, name, content)])
        for content, name, call_id in zip(contents, names, ids, strict=True)
    ]


def turns(*conversations: tuple[Sequence[ChatMessage], Sequence[ChatMessage]]) -> RequestedCalls:
    """What was asked and answered in each turn."""
    return RequestedCalls(
        [
            (number, Conversation(partial(list, asked), partial(list, made)))
            for number, (asked, made) in enumerate(conversations)
        ]
    )


def results(found: RequestedCalls) -> list[tuple[str, object]]:
    answers = [(requested.request.name, found.answer(requested)) for requested in found.in_order]
    return [(name, None if answer is None else answer.content) for name, answer in answers]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (asks("get", "get", "find"), tells("one", "two", "three")),
        (asks("get", "get", "find"), tells("three", "one", "two", names=["find", "get", "get"])),
        (
            asks("get", "get", "find", ids=["f1", "f2", "f3"]),
            tells("one", "two", "three", ids=["c1", "c2", "c3"]),
        ),
        (ChatMessage("assistant"), tells("one", "two", "three")),
        (
            asks("get", "get", "find", ids=["c1", "c2", "c3"]),
            tells("three", "one", "two", ids=["c3", "c1", "c2"]),
        ),
    ],
    ids=["in order", "by name", "under other ids", "after a message that says nothing", "by id"],
)
def test_results_are_those_that_follow_the_calls_in_the_history(
    asked: ChatMessage, told: list[ChatMessage]
) -> None:
    made = asked if asked.requests else asks("get", "get", "find")

    found = turns(([USER], [made]), ([USER, asked, *told], [ANSWER]))

    assert [("get", "one"), ("get", "two"), ("find", "three")] == results(found)


def test_results_with_names_are_found_in_a_history_that_lacks_the_calls() -> None:
    first, second = tells("one", names=["get"]), tells("two", names=["get"])

    found = turns(
        ([USER], [asks("get")]), ([USER, *first], [asks("get")]), ([USER, *first, *second], [ANSWER])
    )

    assert [("get", "one"), ("get", "two")] == results(found)


@pytest.mark.parametrize(
    "history",
    [
        [USER, asks("get", "find"), *tells("one")],
        [USER, asks("get", "get"), *tells("one", "two")],
        [USER, *tells("one", "two")],
        [USER, asks("get", "find"), *tells("one", "two"), ANSWER, USER],
    ],
    ids=["a result is missing", "other calls", "neither calls nor names", "of an earlier question"],
)
def test_results_that_may_be_those_of_other_calls_are_nobodys(history: list[ChatMessage]) -> None:
    found = turns(([USER], [asks("get", "find")]), (history, [ANSWER]))

    assert [("get", None), ("find", None)] == results(found)


def test_a_client_that_makes_the_calls_itself_tells_them_with_their_results_in_one_answer() -> None:
    made = [asks("get"), *tells("one"), asks("get", "find"), *tells("two", "three"), ANSWER]

    found = turns(([USER], made))

    assert [("get", "one"), ("get", "two"), ("find", "three")] == results(found)
    assert [0, 1, 1] == [requested.after for requested in found.in_order]


def test_an_id_that_is_given_again_after_its_result_is_that_of_another_call() -> None:
    asked = asks("get", ids=["get_0"])
    first, second = tells("one", ids=["get_0"]), tells("two", ids=["get_0"])
    history = [USER, asked, *first]

    found = turns(([USER], [asked]), (history, [asked]), ([*history, asked, *second], [ANSWER]))

    assert [("get", "one"), ("get", "two")] == results(found)
    assert ["", ""] == [found.call_id(requested) for requested in found.in_order]


def test_an_id_that_is_given_again_without_a_result_is_that_of_the_same_call() -> None:
    asked = asks("get", ids=["c1"])

    found = turns(([USER], [asked]), ([USER], [asked]))

    assert ["c1"] == [found.call_id(requested) for requested in found.in_order]


def test_calls_that_an_answer_leaves_out_are_read_from_the_history_of_the_next_turn() -> None:
    silent = ChatMessage("assistant")
    history = [USER, asks("get"), *tells("one")]

    found = turns(
        ([USER], [silent]), (history, [silent]), ([*history, asks("find"), *tells("two")], [ANSWER])
    )

    assert [("get", 0, "one"), ("find", 1, "two")] == [
        (name, requested.model, result)
        for (name, result), requested in zip(results(found), found.in_order, strict=True)
    ]


@pytest.mark.timeout(5)
def test_many_turns_without_an_answer_take_time_in_proportion_to_their_number() -> None:
    unanswered = [
        (number, Conversation(partial(list, [USER]), partial(list, ()))) for number in range(20_000)
    ]
    answered = (20_000, Conversation(partial(list, [USER]), partial(list, [ANSWER])))

    assert not RequestedCalls(unanswered, lambda model: False).hidden
    assert [*range(20_000)] == RequestedCalls([*unanswered, answered], lambda model: False).hidden
