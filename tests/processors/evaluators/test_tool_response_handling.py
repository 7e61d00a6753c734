from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs
from pydantic import ValidationError

from processors.evaluators.tool_response_handling import ToolResponseHandling, ToolResponseHandlingConfig
from processors.model import (
    AgentRun,
    Decision,
    Message,
    NotEvaluated,
    NotEvaluatedReason,
    RunFacts,
    Score,
    ToolError,
    ValueState,
)
from processors.response_handling import RULE_IDS, RULES
from tests.support.agent_responses import answered, call
from tests.support.parity import load_cases
from tests.support.response_handling import run_of_case

ALL = tuple(f"RH{number}" for number in range(1, 13))


def graded(run: AgentRun, **config: object) -> Score:
    answer = evaluator(**config).evaluate(run, RunFacts())
    assert isinstance(answer, Score)
    return answer


def evaluator(**config: object) -> ToolResponseHandling:
    return ToolResponseHandling(ToolResponseHandlingConfig.model_validate(config))


def found(score: Score) -> list[Any]:
    violations = score.details["violations"]
    assert isinstance(violations, list)
    return violations


def checks_of(score: Score) -> list[str]:
    return [violation["check"] for violation in found(score)]


def shares(gating: object) -> tuple[float, float]:
    """Of the labelled cases: the share of wrong ones that is caught, and of sound ones that is flagged."""
    hits: dict[str, list[bool]] = {"incorrect": [], "correct": []}
    for case in load_cases("response_handling_labelled"):
        hits[case["label"]].append(graded(run_of_case(case), gating=gating).value < 1)
    caught, flagged = hits["incorrect"], hits["correct"]
    return sum(caught) / len(caught), sum(flagged) / len(flagged)


def test_the_default_gate_catches_some_wrong_cases_and_flags_no_sound_one() -> None:
    caught, flagged = shares(ToolResponseHandlingConfig().gating)

    assert caught >= 0.3
    assert flagged == 0.0


def test_each_kind_of_check_catches_a_labelled_case_of_its_own() -> None:
    needed = {
        check
        for case in load_cases("response_handling_labelled")
        if case["label"] == "incorrect"
        for check in checks_of(graded(run_of_case(case)))
    }

    assert {"RH1.2", "RH3.1", "RH4", "RH5", "RH7.1"} <= needed


def test_a_violation_of_an_advisory_check_is_reported_and_does_not_decide() -> None:
    run = answered("There are 73 open tickets.", call({"open": 37}))
    expected = {
        "check": "RH1.2", "call": None, "claim": "There are 73 open tickets",
        "evidence": "73 is not in the results; nearest: open 37", "path": "", "gating": False,
    }  # fmt: skip

    score = graded(run, gating=["RH4"])

    assert 1.0 == score.value
    assert 1.0 == score.details["graded_score"]
    assert expected in found(score)
    assert "no gating rule violated" == score.lines[0]
    assert "RH1.2 (advisory): 73 is not in the results; nearest: open 37" in score.lines


def test_removed_rules_may_be_named_beside_others_and_have_no_effect() -> None:
    run = answered("There are 73 open tickets.", call({"open": 37}))

    assert 1.0 == graded(run, gating=["RH4", "RH8", "RH10.2"]).value
    assert "RH8" not in str(graded(run, gating=["RH4", "RH8"]).details)


def test_gating_of_removed_rules_alone_is_refused_with_the_reason() -> None:
    with pytest.raises(ValidationError, match=r"RH12\.5 was removed: it was wrong on runs of real models"):
        ToolResponseHandlingConfig.model_validate({"gating": ["RH12.5", "RH13"]})


def test_a_violation_of_a_gating_check_decides_and_lowers_the_graded_score() -> None:
    run = answered("There are 73 open tickets.", call({"open": 37}))

    score = graded(run, gating=["RH1", "RH4", "RH7"])

    assert 0.0 == score.value
    assert 1 - 1 / 5 == score.details["graded_score"]


def test_an_id_stands_for_all_its_parts_and_a_part_for_itself() -> None:
    run = answered("There are 73 open tickets.", call({"open": 37}))

    assert 1.0 == graded(run, gating=["RH1.7", "RH1.7"]).value
    assert 0.0 == graded(run, gating=["RH1"]).value
    assert 0.0 == graded(run, gating=["RH1.2"]).value


@pytest.mark.parametrize("gating", [["RH99"], ["rh1"], ["RH4.1"], [], "RH1"])
def test_gating_that_names_no_check_is_refused(gating: object) -> None:
    with pytest.raises(ValidationError, match="gating"):
        ToolResponseHandlingConfig.model_validate({"gating": gating})


def test_the_ids_of_checks_can_all_be_written_as_gating() -> None:
    assert RULE_IDS == ToolResponseHandlingConfig.model_validate({"gating": RULE_IDS}).gating


def test_without_captured_content_only_the_checks_of_errors_apply() -> None:
    run = replace(answered("", call({"a": 1}), call({"a": 2})), output_state=ValueState.ABSENT)

    score = graded(run)

    not_applicable = score.details["not_applicable"]
    assert isinstance(not_applicable, list)
    assert {"RH1", "RH3", "RH7", "RH15", "RH16"} <= {*map(str, not_applicable)}
    assert 1.0 == score.value


@pytest.mark.parametrize("state", [ValueState.ABSENT, ValueState.REDACTED, ValueState.TRUNCATED])
def test_an_error_whose_admission_cannot_be_read_is_neither_hidden_nor_admitted(state: ValueState) -> None:
    failed = replace(answered("", call(error="TimeoutError")), output_state=state)
    made_good = replace(answered("", call(error="TimeoutError"), call({"a": 1})), output_state=state)

    answer = evaluator().evaluate(failed, RunFacts())

    assert isinstance(answer, NotEvaluated)
    assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is answer.reason
    assert 1.0 == graded(made_good).value


@pytest.mark.parametrize(
    ("known", "is_graded"),
    [
        ({}, False),
        ({"error": ToolError(type="TimeoutError", message="")}, False),
        ({"lenient_values": True}, False),
        ({"decision": Decision.PENDING}, True),
        ({"decision": Decision.DENIED}, True),
        ({"result_state": ValueState.UNPARSED, "result_text": "Sunny"}, True),
    ],
)
def test_a_run_of_which_neither_the_answer_nor_what_came_of_a_call_is_known_is_not_passed(
    known: dict[str, Any], is_graded: bool
) -> None:
    one = structs.replace(call(), **{"result_state": ValueState.ABSENT, **known})
    run = replace(answered("", one), output_state=ValueState.ABSENT)

    answer = evaluator().evaluate(run, RunFacts())

    assert is_graded is isinstance(answer, Score)
    if isinstance(answer, NotEvaluated):
        assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is answer.reason
    assert 1.0 == graded(answered("Done.", one), gating=["RH5"]).value  # where the answer is known


def test_a_result_that_was_not_captured_leaves_the_content_checks_out() -> None:
    hidden = structs.replace(call({"open": 37}), result_state=ValueState.TRUNCATED)

    score = graded(answered("There are 73 open tickets.", hidden))

    assert [] == checks_of(score)


def test_where_no_gating_check_applies_the_run_is_not_evaluated() -> None:
    run = replace(answered("", call({"a": 1})), output_state=ValueState.ABSENT)

    answer = evaluator(gating=["RH1", "RH7"]).evaluate(run, RunFacts())

    assert isinstance(answer, NotEvaluated)
    assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is answer.reason


def test_a_run_without_calls_is_not_applicable() -> None:
    answer = evaluator().evaluate(answered("Hello!"), RunFacts())

    assert isinstance(answer, NotEvaluated)
    assert NotEvaluatedReason.NOT_APPLICABLE is answer.reason


@pytest.mark.parametrize(
    "run",
    [
        answered("a" * 8_193, call({"a": 1})),
        answered("It is 4.5.", call("word " * 14_000)),
        answered("It is 4.5.", call(list(range(5_001)))),
        answered("done", *[call({"a": 1})] * 201),
    ],
    ids=["answer", "text", "values", "calls"],
)
def test_beyond_a_cap_the_run_is_over_limit(run: AgentRun) -> None:
    answer = evaluator().evaluate(run, RunFacts())

    assert isinstance(answer, NotEvaluated)
    assert NotEvaluatedReason.OVER_LIMIT is answer.reason


def test_of_more_evidence_than_is_searched_what_the_answer_repeats_is_still_supported() -> None:
    assert 1.0 == graded(answered("It is 1234.", call(list(range(5_001))))).value


def test_the_words_of_an_answer_in_an_uncovered_language_are_not_judged() -> None:
    run = answered("Din inkorg är full och det finns fem nya brev till dig.", call({"error": "timeout"}))

    score = graded(run)

    not_applicable = score.details["not_applicable"]
    assert isinstance(not_applicable, list)
    assert {"RH4", "RH9"} <= {*map(str, not_applicable)}
    assert 1.0 == score.value


@pytest.mark.parametrize(
    ("hidden", "admitted"),
    [
        ("Ihr Posteingang ist auf dem neuesten Stand.", "Der Posteingang war leider nicht erreichbar."),
        ("Votre boîte est à jour.", "Je n'ai pas pu lire votre boîte : le service est en panne."),
        ("Su bandeja está al día.", "No se pudo leer su bandeja por un error."),
        ("A sua caixa está em dia.", "Não foi possível abrir a sua caixa."),
        ("La sua casella è aggiornata.", "Purtroppo la casella non risponde."),
        ("Je postvak is bij.", "Het postvak is helaas niet bereikbaar."),
        ("Skrzynka jest aktualna.", "Niestety nie udało się otworzyć skrzynki."),
        ("受信トレイは最新です。", "受信トレイを開けませんでした。"),
        ("您的收件箱是最新的。", "抱歉，无法读取您的收件箱。"),
    ],
)
def test_an_error_is_hidden_or_admitted_in_the_words_of_the_answers_language(
    hidden: str, admitted: str
) -> None:
    failed = call({"error": "timeout"})

    assert "RH4" in checks_of(graded(answered(hidden, failed)))
    assert "RH4" not in checks_of(graded(answered(admitted, failed)))


def test_what_the_user_said_earlier_in_the_conversation_is_evidence() -> None:
    run = replace(
        answered("Your order 48213 ships to unit B-77.", call({"shipped": True}), user="And now?"),
        messages=[
            Message(role="user", content="My order is 48213, unit B-77.", turn=0),
            Message(role="assistant", content="Noted.", turn=0),
            Message(role="user", content="And now?", turn=1),
        ],
    )

    assert [] == checks_of(graded(run, gating=ALL))


def test_results_that_are_text_with_json_in_it_are_read() -> None:
    run = answered("There are 37 open tickets.", call('{"open": 37}'))

    assert [] == checks_of(graded(run))


def test_an_output_that_is_an_object_is_read_as_its_json() -> None:
    run = answered({"open": 73}, call({"open": 37}))

    assert ["RH1.2"] == checks_of(graded(run))


def test_error_words_and_acknowledgements_can_be_added() -> None:
    frozen = call({"error": "ledger sealed"}, name="book")
    run = answered("The ledger is closed for this month.", frozen)

    assert 0.0 == graded(run).value
    assert 1.0 == graded(run, acknowledgements=["is closed for"]).value
    assert ["RH6", "RH9.a"] == [
        violation["check"] for violation in found(graded(run, error_words={"argument": ["ledger sealed"]}))
    ]


def test_all_gates_every_rule() -> None:
    run = answered("There are 73 open tickets.", call({"open": 37}))

    assert all(violation["gating"] for violation in found(graded(run, gating="all")))
    assert 0.0 == graded(run, gating="all").value


def test_every_check_names_what_it_finds() -> None:
    assert all(check.finds for check in RULES)
    assert len(set(RULE_IDS)) == len(RULE_IDS)


@pytest.mark.parametrize(
    "piece",
    [
        "a", "1", "1.", "1,", "1 000 ", "a-1-", "a@a.", "9-", "Ab ", "http://", "1:", "a:", "(1 ", " ", "\n",
        "eyJ", "has been ", "Bearer ", "at a.b(", "Jan 3, 2024 ", "_", "5 km ", "2 hours 5 minutes ",
        "$1.5M ", "°C 5",
    ],
)  # fmt: skip
def test_hostile_answers_and_results_are_answered(piece: str) -> None:
    text = piece * (8_000 // len(piece))

    answer = evaluator(gating=ALL).evaluate(
        answered(text, call({"text": text * 3, "n": 5}), user=text), RunFacts()
    )

    if isinstance(answer, NotEvaluated):
        assert NotEvaluatedReason.OVER_LIMIT is answer.reason
    else:
        assert all(
            len(violation[part]) <= 250 for violation in found(answer) for part in ("claim", "evidence")
        )


def test_without_advisory_checks_the_score_is_the_same_and_nothing_else_is_reported() -> None:
    gating = ("RH4", "RH7")

    for case in load_cases("response_handling_labelled"):
        run = run_of_case(case)
        whole = evaluator(gating=gating).evaluate(run, RunFacts())
        alone = evaluator(gating=gating, advisory=False).evaluate(run, RunFacts())
        assert isinstance(whole, Score)
        assert isinstance(alone, Score)
        assert whole.value == alone.value
        assert [violation for violation in found(whole) if violation["gating"]] == found(alone)


def test_what_a_framework_says_of_a_tool_that_does_not_exist_is_no_error_to_admit() -> None:
    refused = structs.replace(call(name="refund_order", error="no such tool", order="A-18"), executed=False)
    refund = call({"refunded": True}, name="refund_payment", order="A-18")
    run = answered("Order A-18 was refunded.", refused, refund, user="Refund order A-18")

    assert ["RH4", "RH9.a"] == checks_of(graded(run, gating=["RH4", "RH9.a"], advisory=False))
    offered = replace(run, available_tools={"refund_payment": None})
    assert 1.0 == graded(offered, gating=["RH4", "RH9.a"], advisory=False).value
    mine = replace(run, available_tools={"refund_payment": None, "refund_order": None})
    assert 0.0 == graded(mine, gating=["RH4", "RH9.a"], advisory=False).value
