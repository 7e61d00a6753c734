"""Rules RH4, RH5, RH6 and RH9.a: how calls ended, and whether the answer makes use of it."""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Final
from unicodedata import normalize

from processors.comparison import equality_key
from processors.response_handling.failures import ErrorClass, ToolFailure
from processors.response_handling.ledger import folded
from processors.response_handling.lexicon import STEM
from processors.response_handling.lexicons import keys
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.response import (
    TROUBLE,
    Finding,
    Response,
    Settings,
    shown,
    target_of,
    words_of,
)

_MOST_SHOWN: Final = 5
_LONGEST: Final = 2_000
_FUTILE: Final = 2


@lru_cache(maxsize=1024)
def acts(name: str) -> bool:
    """Whether a tool does something, by its name, so that no other tool's success stands in for it."""
    return any(word.startswith(keys.ACTION_VERBS) for word in key_words(name))


@lru_cache(maxsize=4096)
def is_dry(text: str) -> bool:
    """Whether a key or a mode says that nothing is done."""
    return folded(bare(text)).startswith(keys.DRY_STEMS)


def _admits(position: int, response: Response, settings: Settings) -> bool:
    """Whether the answer says that a call did not work, or cannot be read for that.

    That there is nothing admits that a thing does not exist, and that nothing was done; no other error.
    """
    call, low = response.calls[position], response.output.casefold()
    if not (response.is_answered and response.words.language):
        return True
    if any(phrase.casefold() in low for phrase in settings.acknowledgements if phrase.strip()):
        return True
    is_plain = acts(call.name) or call.failure is None or call.failure.is_absence
    if is_plain or response.kinds.isdisjoint(TROUBLE):
        return not response.kinds.isdisjoint(TROUBLE)
    known = (str(part) for leaf in response.current for part in (leaf.value, leaf.key))
    words = response.asked.union(*(words_of(text[:_LONGEST]) for text in known))
    return response.words.tells_failure(response.output, frozenset(word[:STEM] for word in words))


def hidden_errors(response: Response, settings: Settings) -> Iterator[Finding]:
    """RH4: an error that no later success makes good nor the answer admits; RH9.a: a success claimed.

    RH6 is the same for refused arguments. That a thing does not exist often is the answer itself.
    """
    calls = response.calls
    last_of_tool = {call.name: position for position, call in enumerate(calls)}
    hidden = []
    for position, failure in _outstanding(response):
        is_retryable = failure.error_class is ErrorClass.RETRYABLE
        if settings.require_retry and is_retryable and last_of_tool[calls[position].name] == position:
            what = f"not tried again: {failure.summary}"
            yield Finding("RH4", f"no further call of {calls[position].name}", what, "", position)
        elif not _tells_of(position, response) and not _admits(position, response, settings):
            hidden.append((position, failure))
    if hidden:
        for position, failure in hidden[:_MOST_SHOWN]:
            rule = "RH6" if failure.error_class is ErrorClass.ARGUMENT else "RH4"
            yield Finding(rule, shown(response.output), f"not admitted: {failure.summary}", "", position)
        if response.kinds & {"done", "yes"}:
            position, failure = hidden[-1]
            what = f"{calls[position].name} failed: {failure.summary}"
            yield Finding("RH9.a", shown(response.output), what, "", position)


def has_outstanding_errors(response: Response) -> bool:
    """Whether an error is left that no later call makes good, so that the answer has to admit it."""
    return next(_outstanding(response), None) is not None


def _outstanding(response: Response) -> Iterator[tuple[int, ToolFailure]]:
    """The failures that no later call makes good.

    A later success of the tool does, unless its calls are for one thing after the other; so does one of
    another tool, unless the failed one was to do something.
    """
    calls = response.calls
    last_success = max((position for position, call in enumerate(calls) if call.failure is None), default=-1)
    for position, call in enumerate(calls):
        same = [other for other, made in enumerate(calls) if made.name == call.name and made.failure is None]
        later = [other for other in same if other > position]
        if call.failure is None or (not later and position < last_success and not acts(call.name)):
            continue
        is_series = len(later) < len(same) or (acts(call.name) and _is_named_alone(position, later, response))
        is_other = call.arguments is not None and all(target_of(calls[n]) != target_of(call) for n in later)
        if not later or (is_series and is_other):
            yield position, call.failure


def _is_named_alone(position: int, later: list[int], response: Response) -> bool:
    """Whether the answer names what a failed action was for, and no later success was for the same."""
    call, output = response.calls[position], folded(response.output)
    own = {folded(text) for text in (call.arguments or {}).values() if isinstance(text, str)}
    done = {folded(str(text)) for other in later for text in (response.calls[other].arguments or {}).values()}
    is_argument = call.failure is not None and call.failure.error_class is ErrorClass.ARGUMENT
    return not is_argument and any(len(text) > 3 and text in output for text in own - done)


def _tells_of(position: int, response: Response) -> bool:
    """Whether the answer repeats what a refusal came with and nobody had said: times, dates, names."""
    known = {moment.minutes for moment in response.ledger.moments if moment.call < 0}
    offered = {moment.minutes for moment in response.ledger.moments if moment.call == position} - known
    if any(token.kind == "time" and token.minutes in offered for token in response.tokens):
        return True
    texts = (folded(str(leaf.value)) for leaf in response.ledger.leaves if leaf.call == position)
    output, user = folded(response.output), response.user_text
    return any(len(text) > 4 and text in output and text not in user for text in texts)


def futile_repetitions(response: Response, settings: Settings) -> Iterator[Finding]:
    """RH5: a call with a permanent or unknown error made again, or a retryable one too often.

    RH6 are refused arguments sent again. What worked at last was not futile.
    """
    made = [(call.name, equality_key(call.arguments)) for call in response.calls]
    good = {key: n for n, key in enumerate(made) if response.calls[n].failure is None}
    tried = Counter[object]()
    for position, (key, call) in enumerate(zip(made, response.calls, strict=True)):
        failure = call.failure
        if failure is not None and call.arguments is not None and good.get(key, -1) < position:
            is_retryable = failure.error_class is ErrorClass.RETRYABLE
            tried[key, is_retryable] += 1
            if tried[key, is_retryable] >= (settings.retryable_attempts if is_retryable else _FUTILE):
                rule = "RH6" if failure.error_class is ErrorClass.ARGUMENT else "RH5"
                what = f"{call.name} repeated unchanged after: {failure.summary}"
                yield Finding(rule, call.name, what, "", position)


def bare(text: str) -> str:
    """A text in lower case and without accents on Latin letters, as keys are written."""
    if text.isascii():
        return text.lower()
    return "".join(normalize("NFD", mark)[0] if "\x7f" < mark < "\u0250" else mark for mark in text.lower())
