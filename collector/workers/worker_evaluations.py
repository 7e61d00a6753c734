"""Grading a run with custom evaluations: workers answer those, everything else is graded as always.

`processors.evaluate` alone decides which questions are sent and what an answer results in (sampling, `when`,
incomplete runs, thresholds, mutes).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from collector.workers.pool import WorkerPool
from collector.workers.worker_evaluator import WorkerEvaluator, WorkerFailure, run_text
from processors.criteria import Evaluation
from processors.evaluate import Answer, Planned, answer_of, finish, plan
from processors.model import AgentRun, EvaluationResult, NotEvaluated, RunFacts, SkipReason, WholeTrace


def needs_workers(evaluations: Sequence[Evaluation]) -> bool:
    """Whether any of `evaluations` is custom."""
    return any(isinstance(evaluation.evaluator, WorkerEvaluator) for evaluation in evaluations)


class QuestionedRun(NamedTuple):
    """A run whose verdicts depend on workers, with what is known already.

    `questions` are evaluators with the message to them, by the name of the evaluation.
    """

    run: AgentRun
    planned: Sequence[Planned]
    questions: Mapping[str, tuple[str, bytes]]

    def results(self, answers: Mapping[str, Answer], unix_nano: int) -> list[EvaluationResult]:
        """The results of the run, with the `answers` to its questions."""
        facts = RunFacts()
        results = []
        for evaluation, known in self.planned:
            answer = known or answers.get(evaluation.name) or answer_of(evaluation, self.run, facts)
            results.append(finish(evaluation, answer, unix_nano))
        return results


def question_run(
    run: AgentRun,
    evaluations: Sequence[Evaluation],
    on_skip: Callable[[SkipReason], None],
    trace: WholeTrace,
) -> QuestionedRun:
    """The questions to workers about `run`: none whose answer could not count."""
    planned = plan(run, evaluations, on_skip, trace)
    questions: dict[str, tuple[str, bytes]] = {}
    text = b""
    for place, (evaluation, known) in enumerate(planned):
        evaluator = evaluation.evaluator
        if known is None and isinstance(evaluator, WorkerEvaluator):
            text = text or run_text(run)
            question = evaluator.question(run, text)
            if isinstance(question, NotEvaluated):
                planned[place] = evaluation, question
            else:
                questions[evaluation.name] = evaluator.id, question
    return QuestionedRun(run, planned, questions)


async def query_workers(questions: Mapping[str, tuple[str, bytes]], pool: WorkerPool) -> dict[str, Answer]:
    """The answers of `pool` by the name of the evaluation; a failure is a `WorkerFailure`."""
    answers = await asyncio.gather(*[_answer(*question, pool) for question in questions.values()])
    return dict(zip(questions, answers, strict=True))


async def _answer(evaluator: str, question: bytes, pool: WorkerPool) -> Answer:
    try:
        return await pool.request(evaluator, question)
    except WorkerFailure as failure:
        return failure
