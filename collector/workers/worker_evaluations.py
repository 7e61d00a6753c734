"""Grading a run where some of its evaluations are custom: workers are asked first, then all is as always.

Everything around the answer (sampling, `when`, incomplete runs, thresholds, mutes) is decided by
`processors.evaluate` alone.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from collector.workers.answer import WorkerFailure
from collector.workers.pool import WorkerPool
from collector.workers.worker_evaluator import WorkerEvaluator, run_text
from processors.criteria.agent_criteria import Evaluation
from processors.evaluate import evaluate_run
from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import (
    EvaluationResult,
    NotEvaluated,
    NotEvaluatedReason,
    Outcome,
    Score,
    SkipReason,
)


def need_workers(evaluations: Sequence[Evaluation]) -> bool:
    """Whether any of `evaluations` is custom."""
    return any(isinstance(evaluation.evaluator, WorkerEvaluator) for evaluation in evaluations)


async def evaluate_with_workers(
    run: AgentRun,
    evaluations: Sequence[Evaluation],
    pool: WorkerPool,
    *,
    unix_nano: int,
    on_skip: Callable[[SkipReason], None],
) -> list[EvaluationResult]:
    """As `evaluate_run`, with the answers of `pool` for custom evaluations.

    Nothing is asked where the answer could not count. What a worker failed with is the `error_type`.
    """
    asked = [
        (evaluation.name, evaluation.evaluator)
        for evaluation in evaluations
        if isinstance(evaluation.evaluator, WorkerEvaluator)
        and _counts(run, evaluation, evaluation.evaluator, unix_nano)
    ]
    text = run_text(run) if asked else b""
    found = await asyncio.gather(*[_answer(run, text, evaluator, pool) for _, evaluator in asked])
    answers = {name: answer for (name, _), answer in zip(asked, found, strict=True)}
    ready = [
        replace(
            evaluation, evaluator=evaluation.evaluator.answered_by(partial(_give, answers[evaluation.name]))
        )
        if isinstance(evaluation.evaluator, WorkerEvaluator) and evaluation.name in answers
        else evaluation
        for evaluation in evaluations
    ]
    results = evaluate_run(run, ready, unix_nano=unix_nano, on_skip=on_skip)
    return [_with_error_type(result, answers.get(result.name)) for result in results]


def _counts(run: AgentRun, evaluation: Evaluation, evaluator: WorkerEvaluator, unix_nano: int) -> bool:
    """Whether the evaluation gets as far as asking its evaluator."""
    is_asked = False

    def answer() -> NotEvaluated:
        nonlocal is_asked
        is_asked = True
        return NotEvaluated(NotEvaluatedReason.NOT_APPLICABLE)

    evaluate_run(run, [replace(evaluation, evaluator=evaluator.answered_by(answer))], unix_nano=unix_nano)
    return is_asked


async def _answer(
    run: AgentRun, text: bytes, evaluator: WorkerEvaluator, pool: WorkerPool
) -> Score | NotEvaluated | WorkerFailure:
    question = evaluator.question(run, text)
    if isinstance(question, NotEvaluated):
        return question
    try:
        return await pool.ask(evaluator.id, question)
    except WorkerFailure as failure:
        return failure


def _give(answer: Score | NotEvaluated | WorkerFailure) -> Score | NotEvaluated:
    if isinstance(answer, WorkerFailure):
        raise answer
    return answer


def _with_error_type(
    result: EvaluationResult, answer: Score | NotEvaluated | WorkerFailure | None
) -> EvaluationResult:
    if isinstance(answer, WorkerFailure) and result.outcome is Outcome.ERROR:
        return replace(result, error_type=answer.error_type)
    return result
