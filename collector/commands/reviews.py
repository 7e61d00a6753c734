"""The command `tracegrade reviews`: people's answers to verdicts, and what follows from them."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import asdict

from collector.commands.arguments import MOMENT, add_argument, add_flag, moment_argument
from collector.commands.command import EXIT_OK, Command, unusable
from collector.commands.output import moment_text, print_table, shortened
from collector.commands.run_source import RunSource, add_source, with_source
from collector.page import test_case
from collector.store import Answer, InvalidReview, NewReview, Review
from processors.model import encode_json

_DESCRIPTION = """
Answer whether a verdict in a run store is right, and list the answers. `list` prints them, newest first;
`precision` what they show of each evaluation and rule, with a 95 % interval; `tests` a criteria file's tests
out of the runs with a verdict answered as wrong, which expect the other outcome; `add` stores an answer.
"""
_MAX_NAME, _MAX_COMMENT = 48, 72


def _add_arguments(parser: ArgumentParser) -> None:
    add_source(parser)
    parser.add_argument("task", choices=list(_TASKS), nargs="?", default="list", help="default: list")
    verdict = "with add: TRACE_ID EVALUATION, and right, wrong or unclear"
    parser.add_argument("verdict", nargs="*", metavar="VERDICT", help=verdict)
    add_argument(parser, "--span", str, "ID", "with add: the span of the run, if the trace has several")
    add_argument(parser, "--call", str, "ID", "with add: the tool call that the verdict is about")
    add_argument(parser, "--comment", str, "TEXT", "with add: why, at most 1,000 characters")
    add_argument(parser, "--reviewer", str, "NAME", "with add: who answers")
    add_argument(parser, "--agent", str, "NAME", "answers about this agent")
    add_argument(parser, "--evaluation", str, "NAME", "answers about this evaluation")
    parser.add_argument("--answer", choices=[answer.value for answer in Answer], help="only these answers")
    add_argument(parser, "--since", moment_argument, "TIME", f"given since then: {MOMENT}")
    add_flag(parser, "--export", "with list: JSON lines, with every field")


def _run(options: Namespace, source: RunSource) -> int:
    if bool(options.verdict) != (options.task == "add"):
        raise unusable("expected add TRACE_ID EVALUATION right|wrong|unclear, or another task alone")
    return _TASKS[options.task](options, source)


def _add(options: Namespace, source: RunSource) -> int:
    if len(options.verdict) != len(("TRACE_ID", "EVALUATION", "ANSWER")):
        raise unusable("expected add TRACE_ID EVALUATION right|wrong|unclear")
    trace_id, evaluation, answer = options.verdict
    others = {"span_id": options.span, "tool_call_id": options.call}
    others |= {"comment": options.comment, "reviewer": options.reviewer}
    given = {name: value for name, value in others.items() if value}
    try:
        review = source.review(NewReview(trace_id, evaluation, answer, **given))
    except InvalidReview as error:
        raise unusable(str(error)) from None
    print(f"{review.agent}: {review.evaluation}: {review.outcome} is {review.answer}")
    return EXIT_OK


def _list(options: Namespace, source: RunSource) -> int:
    reviews = source.reviews(_filters(options))
    if options.export:
        for review in reviews:
            print(encode_json(asdict(review)).decode())
        return EXIT_OK
    rows = [
        (
            moment_text(review.milliseconds),
            review.answer,
            shortened(review.agent, _MAX_NAME),
            shortened(review.evaluation, _MAX_NAME),
            review.outcome,
            shortened(review.reviewer, _MAX_NAME),
            shortened(review.comment, _MAX_COMMENT),
            review.trace_id,
        )
        for review in reviews
    ]
    names = ("given", "answer", "agent", "evaluation", "outcome", "reviewer", "comment", "trace")
    return _print(names, rows)


def _precision(options: Namespace, source: RunSource) -> int:
    rows = [
        (shortened(of.agent, _MAX_NAME), shortened(of.evaluation, _MAX_NAME), of.rule, str(answers))
        for of, answers in source.precision().items()
        if options.agent in (None, of.agent) and options.evaluation in (None, of.evaluation) and str(answers)
    ]
    return _print(("agent", "evaluation", "rule", "answers"), rows)


def _tests(options: Namespace, source: RunSource) -> int:
    reviews = list(source.reviews({**_filters(options), "answer": Answer.WRONG.value}))
    traces = dict.fromkeys(review.trace_id for review in reviews)
    tests = []
    for trace in traces:
        of_trace = list(source.reviews({"trace": trace}))
        for line in source.lines(trace):
            span = str(line.get("span_id") or "")
            if any(review.answer == Answer.WRONG for review in _newest(of_trace, span)):
                tests.append(test_case(line, of_trace))
    if not tests:
        print("no stored run has a verdict answered as wrong", file=sys.stderr)
        return EXIT_OK
    print("tests:")
    for test in tests:
        print(test.removeprefix("tests:\n"), end="")
    return EXIT_OK


def _newest(reviews: Sequence[Review], span_id: str) -> list[Review]:
    """The newest review of each verdict of a run; `reviews` are newest first."""
    newest: dict[tuple[str, str], Review] = {}
    for review in reviews:
        if review.span_id == span_id:
            newest.setdefault((review.evaluation, review.tool_call_id), review)
    return list(newest.values())


def _filters(options: Namespace) -> dict[str, str]:
    names = ("agent", "evaluation", "answer", "since")
    return {name: getattr(options, name) for name in names if getattr(options, name)}


def _print(names: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    if rows:
        print_table(names, rows)
    else:
        print("the store holds no such reviews", file=sys.stderr)
    return EXIT_OK


_TASKS = {"list": _list, "add": _add, "precision": _precision, "tests": _tests}

REVIEWS = Command(_add_arguments, with_source(_run), _DESCRIPTION)
