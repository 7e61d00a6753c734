"""Grading a run where some of its evaluations are custom: workers give their answers, all else is as always.

What is asked at all, and what becomes of an answer (sampling, `when`, incomplete runs, thresholds, mutes), is
decided by `processors.evaluate` alone.
"""

import asyncio
from collections.abc import Callable, Sequence

from collector.workers.answer import WorkerFailure
from collector.workers.pool import WorkerPool
from collector.workers.worker_evaluator import WorkerEvaluator, run_text
from processors.criteria import Evaluation
from processors.evaluate import Answer, ask, finish, plan
from processors.model import AgentRun, EvaluationResult, NotEvaluated, RunFacts, SkipReason


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
    planned = plan(run, evaluations, on_skip)
    asked = {
        evaluation.name: evaluation.evaluator
        for evaluation, answer in planned
        if answer is None and isinstance(evaluation.evaluator, WorkerEvaluator)
    }
    text = run_text(run) if asked else b""
    found = await asyncio.gather(*[_answer(run, text, evaluator, pool) for evaluator in asked.values()])
    answers = dict(zip(asked, found, strict=True))
    facts = RunFacts()
    return [
        finish(
            evaluation,
            known or answers.get(evaluation.name) or ask(evaluation, run, facts),
            unix_nano,
        )
        for evaluation, known in planned
    ]


async def _answer(run: AgentRun, text: bytes, evaluator: WorkerEvaluator, pool: WorkerPool) -> Answer:
    question = evaluator.question(run, text)
    if isinstance(question, NotEvaluated):
        return question
    try:
        return await pool.ask(evaluator.id, question)
    except WorkerFailure as failure:
        return failure
