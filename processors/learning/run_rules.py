"""Rules about whole runs: what they may take, and what the answer holds."""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from processors.learning.argument_rules import MIN_VALUES_RUNS
from processors.learning.observed_run import ObservedRun
from processors.learning.rule import Rule, RuleKey
from processors.model import JsonObject, ValueState

SPARE = 1.5
"""How much more than the most that was seen a run may take."""
_FEWEST_PHRASE_CHARACTERS = 12
_MAX_PHRASES = 3
_MAX_OUTPUT = 20_000
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")


def run_rules(runs: Sequence[ObservedRun]) -> Iterator[Rule]:
    """The rules on time, tokens and answers that all `runs` keep."""
    if len(runs) < MIN_VALUES_RUNS:
        return
    seconds = [run.run.duration_seconds for run in runs]
    longest = [value for value in seconds if value is not None]
    if len(longest) == len(runs):
        limit = nice(max(longest) * SPARE)
        statement = f"a run takes at most {limit:g} seconds"
        yield _rule(("duration", "max_seconds"), statement, {"max_seconds": limit}, runs)
    tokens = [run.run.usage.input_tokens + run.run.usage.output_tokens for run in runs if run.run.usage]
    if len(tokens) == len(runs):
        most = int(nice(max(tokens) * SPARE))
        statement = f"a run takes at most {most} tokens"
        yield _rule(("tokens", "max_total_tokens"), statement, {"max_total_tokens": most}, runs)
    yield from _answer_rules(runs)


def _rule(key: RuleKey, statement: str, criteria: JsonObject, runs: Sequence[ObservedRun]) -> Rule:
    return Rule(key, statement, {"criteria": criteria}, len(runs), len(runs))


def nice(value: float) -> float:
    """`value` rounded up to two digits."""
    if value <= 0:
        return 1.0
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / step - 1e-9) * step:.6g}")


def _answer_rules(runs: Sequence[ObservedRun]) -> Iterator[Rule]:
    answers = [
        run.run.output
        for run in runs
        if run.run.output_state is ValueState.PRESENT and isinstance(run.run.output, str)
    ]
    texts = [answer[:_MAX_OUTPUT].lower() for answer in answers]
    if len(texts) < len(runs):
        return
    shortest = min(answers, key=lambda text: (len(text), text))
    phrases = [sentence.strip() for sentence in _SENTENCE.findall(shortest[:_MAX_OUTPUT])]
    shared = (
        phrase
        for phrase in dict.fromkeys(phrases)
        if len(phrase) >= _FEWEST_PHRASE_CHARACTERS and all(phrase.lower() in text for text in texts)
    )
    for phrase in islice(shared, _MAX_PHRASES):
        statement = f'the answer says "{phrase}"'
        yield _rule(("answer", "phrase", phrase), statement, {"search_text": phrase}, runs)
