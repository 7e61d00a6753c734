"""What runs of real models do that is sound though it looks wrong, and what they do that is wrong."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from msgspec import structs

from processors.model import AgentRun, CallCategory, Message, ToolCall, ToolError
from processors.response_handling import ErrorClass, ErrorClassifier, ObservedCall, Response, Settings
from tests.processors.response_handling.test_rules import evidence, parts_of
from tests.support.agent_responses import answered, call

NOT_FOUND = call("Error: user not found", name="find_user_id_by_email", email="kim@example.com")
BY_NAME = call("kim_berg_81", name="find_user_id_by_name_zip", first="Kim", last="Berg", zip="10108")
REFUSED = call("Error: order is not delivered yet", name="exchange_order_items", order="#W8177")
CHANGED = call({"order": "#W8177", "status": "changed"}, name="modify_order_items", order="#W8177")
UNPAID = call("Error: payment does not add up, the price is 305, paid 255", name="book_flight", user="kim")
DOWN = call("Error: hotel service unavailable (HTTP 503)", name="lookup_hotel", city="Bergen")


@pytest.mark.parametrize(
    ("calls", "output"),
    [
        ([NOT_FOUND, BY_NAME], "I've located your account. How can I help?"),
        ([REFUSED, CHANGED], "Order #W8177 has been changed as you wished."),
        ([call(error="TimeoutError", name="newsapi"), call({"title": "Rain"}, name="web_search", q="news")],
         "Top headline: Rain."),
        ([UNPAID], "The price is actually 305 for all of you."),
        ([UNPAID], "It comes to a higher total than was quoted. Would you like me to charge the rest?"),
        ([DOWN], "The hotel service could not be reached, so I left Bergen out."),
        ([DOWN], "The service in question is unavailable."),
        ([call("Error: only standard gift cards are accepted for refunds", name="refund", order="77")],
         "It seems that only standard cards will do. Which of yours is one?"),
    ],
    ids=["look-up", "write", "other source", "number", "go-ahead", "admitted", "synonym", "words"],
)  # fmt: skip
def test_an_error_that_was_made_good_or_admitted_in_other_words_is_not_hidden(
    calls: Sequence[ToolCall], output: str
) -> None:
    assert {"RH4", "RH9.a"}.isdisjoint(parts_of(answered(output, *calls, user="Please see to it.")))


@pytest.mark.parametrize(
    ("calls", "output"),
    [
        ([DOWN, call("$41", name="lookup_flight", city="Oslo")], "Bergen has the cheapest hotels, at $41."),
        ([call("$90", name="lookup_hotel", city="Oslo"), DOWN, call("$95", name="lookup_hotel", city="Rome")],
         "Of Oslo, Bergen and Rome the cheapest is Oslo at $90."),
        ([REFUSED], "Done, the items have been exchanged."),
        ([REFUSED, call({"ok": True}, name="modify_order_items", order="#W9999")], "Both have been updated."),
        ([call("Temporary data inconsistency detected, retry", name="calculator", a="1+1")], "It is 2.50."),
        ([UNPAID], "Your flight has been booked."),
    ],
    ids=["other subject", "one of a series", "claimed", "another target", "temporary", "booked"],
)  # fmt: skip
def test_an_error_that_nothing_made_good_and_the_answer_hides_is_reported(
    calls: Sequence[ToolCall], output: str
) -> None:
    assert "RH4" in parts_of(answered(output, *calls, user="Please see to it."))


def test_an_answer_owes_no_account_of_what_failed_before_the_users_last_message() -> None:
    run = answered("Your new total is 80.", REFUSED, call(80, name="total"), user="And the total?")
    refusal = Message(role="tool", content=str(REFUSED.result_text), turn=0)
    asked = Message(role="user", content="And the total?", turn=1)

    assert "RH4" in parts_of(run)
    assert "RH4" not in parts_of(replace(run, messages=[refusal, asked]))


def test_handing_over_to_a_person_admits_what_failed() -> None:
    handoff = structs.replace(call("ok", name="transfer_to_human"), category=CallCategory.HANDOFF)

    assert "RH4" in parts_of(answered("Goodbye.", UNPAID))
    assert "RH4" in parts_of(answered("Goodbye.", handoff, UNPAID))
    assert "RH4" not in parts_of(answered("Goodbye.", UNPAID, handoff))


def test_a_tool_that_the_framework_does_not_know_leaves_nothing_to_admit() -> None:
    unknown = call(
        {"error": "Unknown tool name: 'list_files'. Available tools: 'get_file'"}, name="list_files"
    )

    assert "RH4" not in parts_of(
        answered("It is a picture.", unknown, call({"kind": "png"}, name="get_file"))
    )


def test_refused_arguments_are_of_the_class_argument_whatever_words_pydantic_uses() -> None:
    text = '1 validation error: [{"type": "extra_forbidden", "loc": ["x"]}] Fix the errors and try again.'
    failure = ErrorClassifier().failure_of(call({"error": text}))

    assert failure is not None
    assert ErrorClass.ARGUMENT is failure.error_class


@pytest.mark.parametrize(
    ("result", "output"),
    [
        ("France", "Paris has 2,161,000 inhabitants."),
        (1457, '{"city": "Tokyo", "founded": 1457, "population": 14000000}'),
        ("41.3874° N, 2.1686° E", "Barcelona has a population of 1620343."),
        ({"file": "attached"}, "It is a picture of 291 x 401 pixels."),
        (4, "The duration is 8.95 years at 1.30 % a year, and 2 + 2 = 4."),
    ],
    ids=["no numbers", "field of a structured answer", "another size", "a file", "another dimension"],
)
def test_what_results_have_no_numbers_of_is_knowledge_and_no_invention(result: object, output: str) -> None:
    assert "RH1.2" not in parts_of(answered(output, call(result)))  # type: ignore[arg-type]  # JSON


@pytest.mark.parametrize(
    "output",
    [
        '{"name": "lookup_hotel", "arguments": {"city": "Bergen"}} </tool_call>',
        'I have to calculate the total:\n\n```json\n{"name": "calculator", "parameters": {"a": 1}}\n```',
        '<tool_call>{"name": "x", "arguments": {}}',
    ],
)
def test_the_text_of_a_tool_call_is_no_answer(output: str) -> None:
    assert "RH15.1" in parts_of(answered(output, call("$41")))


def test_an_answer_that_only_quotes_a_tool_call_is_one() -> None:
    quoted = 'It was called as {"name": "lookup", "arguments": {"city": "Bergen"}} and returned $41.'

    assert "RH15.1" not in parts_of(answered(quoted, call("$41")))


@pytest.mark.parametrize(
    ("output", "is_promise"),
    [
        ("Great! I found a tool for this. Let me get the exchange rate for you.", True),
        ("I'll look up the refund policy.", True),
        ("Now, let's proceed with the change. What would you like to change?", False),
        ("The rate is fixed. Let me know if you need more.", False),
    ],
)
def test_an_answer_that_only_promises_to_act_is_reported(output: str, is_promise: bool) -> None:
    assert is_promise is ("RH15.2" in parts_of(answered(output, call({"fixed": True}))))


@pytest.mark.parametrize(
    "output", ["Agent stopped due to iteration limit or time limit.", "Rate limit exceeded."]
)
def test_a_notice_of_the_harness_is_no_answer(output: str) -> None:
    assert "RH15.3" in parts_of(answered(output, call("$41")))


@pytest.mark.parametrize(
    ("returned", "output", "is_found"),
    [
        ("business", "Your flight has been updated.", True),
        ("business", "Your flight was updated, but the cabin is still business.", False),
        ("economy", "Your flight has been updated.", False),
        ("Economy class", "Your flight has been updated.", False),
    ],
)
def test_a_write_that_returned_another_value_than_it_was_given_is_reported(
    returned: str, output: str, is_found: bool
) -> None:
    update = call({"id": "M20", "cabin": returned}, name="update_flight", id="M20", cabin="economy")

    assert is_found is ("RH16" in parts_of(answered(output, update)))


def _response(output: str, run: AgentRun) -> Response:
    calls = [ObservedCall(one.name, {}, one.result, True, one.result_text, None) for one in run.tool_calls]
    return Response(question="How much?", output=output, calls=calls, settings=Settings())


@pytest.mark.parametrize(
    ("output", "is_repeated"),
    [
        ("It is $1,234.50.", True),
        ("It is 24 hours away.", True),
        ("It is 4 hours away.", False),
        ("It is 99.", False),
    ],
)
def test_numbers_that_the_evidence_has_word_for_word_need_no_reading_of_it(
    output: str, is_repeated: bool
) -> None:
    response = _response(output, answered("", call({"price": 1234.5, "lead": "24 hours"})))

    assert is_repeated is response.invents_no_digits


def _failed(error_type: str, message: str) -> ToolCall:
    return structs.replace(call(None, error="x"), error=ToolError(type=error_type, message=message))


@pytest.mark.parametrize(
    ("failed", "expected"),
    [
        (
            _failed("pydantic_ai.exceptions.ToolRetryError", "upstream timeout (503)\n\nTry again."),
            "upstream timeout (503) Try again. (retryable)",
        ),
        (_failed("ToolRetryError", ""), "ToolRetryError (unknown)"),
        (
            call({"status": "error", "error": {"code": 503, "message": "upstream timeout"}}),
            "upstream timeout (retryable)",
        ),
        (call({"error": "upstream timeout"}), "upstream timeout (retryable)"),
        (call("Error: the price is 305, paid 255"), "Error: the price is 305, paid 255 (unknown)"),
        (
            _failed("X", 'Traceback (most recent call last):\n  File "a.py"\nValueError: sold out\n'),
            "ValueError: sold out (unknown)",
        ),
        (_failed("X", "a" * 500), f"{'a' * 119}… (unknown)"),
    ],
)
def test_a_failure_is_summarised_by_the_message_of_the_tool(failed: ToolCall, expected: str) -> None:
    failure = ErrorClassifier().failure_of(failed)

    assert failure is not None
    assert expected == failure.summary


def test_an_error_that_is_not_admitted_is_reported_with_its_tool_and_message() -> None:
    failed = call(None, name="refund_payment", error="upstream timeout (503)")

    reported = evidence(answered("Anything else?", failed))

    assert "not admitted: refund_payment: upstream timeout (503) (retryable)" in reported
