"""Rules RH4 to RH6, RH8 and RH9.a: how calls ended, against what the answer says of it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from processors.comparison import equal_values, equality_key
from processors.response_handling.failures import ErrorClass, ToolFailure
from processors.response_handling.ledger import Leaf, folded
from processors.response_handling.lexicon import lexicon
from processors.response_handling.lexicons.keys import ACTION_VERBS, CACHED_KEYS, STATE_KEYS
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.numbers import Support
from processors.response_handling.reading import agree
from processors.response_handling.response import Finding, Response, shown

_WORD = re.compile(r"[^\W_]{2,40}")
_CLAUSE_END = re.compile(r"[,;:—]|\b(?:but|aber|mais|pero|mas|ma|maar|ale)\b")
_MAX_SHOWN = 5
_FUTILE = 2


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user may change about the rules."""

    require_retry: bool = False
    retryable_attempts: int = 4
    acknowledgements: tuple[str, ...] = ()
    personal_data: frozenset[str] = frozenset()


def admits_trouble(response: Response, settings: Settings) -> bool:
    """Whether the answer says that something did not work, in words of its language."""
    low = response.output.casefold()
    if any(phrase.casefold() in low for phrase in settings.acknowledgements if phrase.strip()):
        return True
    return bool(response.categories & {"negation", "failure", "no", "absent"})


def hidden_errors(response: Response, settings: Settings) -> Iterator[Finding]:
    """RH4: an error that no later success makes good nor the answer admits; RH9.a: a success claimed.

    Argument errors are RH6's matter. That a thing does not exist often is the answer, which then says no.
    """
    calls = response.calls
    last_of_tool = {call.name: position for position, call in enumerate(calls)}
    for position, call in enumerate(calls):
        is_retryable = call.failure is not None and call.failure.error_class is ErrorClass.RETRYABLE
        if settings.require_retry and is_retryable and last_of_tool[call.name] == position and call.failure:
            what = f"not tried again: {call.failure.summary}"
            yield Finding("RH4", f"no further call of {call.name}", what, "", position)
    hidden = [
        (position, failure) for position, failure in _outstanding(response)
        if not (settings.require_retry and failure.error_class is ErrorClass.RETRYABLE
                and last_of_tool[calls[position].name] == position)
    ]  # fmt: skip
    if not hidden or not response.is_answered or not response.words.language:
        return
    if admits_trouble(response, settings):
        return
    for position, failure in hidden[:_MAX_SHOWN]:
        if failure.error_class is not ErrorClass.ARGUMENT:
            yield Finding("RH4", shown(response.output), f"not admitted: {failure.summary}", "", position)
    if response.categories & {"done", "yes"}:
        position, failure = hidden[-1]
        what = f"{calls[position].name} failed: {failure.summary}"
        yield Finding("RH9.a", shown(response.output), what, "", position)


def _outstanding(response: Response) -> Iterator[tuple[int, ToolFailure]]:
    """The failures that no later call makes good.

    Another success of the tool does, unless the tool was called for one thing after the other.
    """
    calls = response.calls
    last_success = max((position for position, call in enumerate(calls) if call.failure is None), default=-1)
    successes: dict[str, list[int]] = {}
    for position, call in enumerate(calls):
        if call.failure is None:
            successes.setdefault(call.name, []).append(position)
    for position, call in enumerate(calls):
        if call.failure is None or _tells_of(position, response):
            continue
        others = successes.get(call.name, [])
        later = [other for other in others if other > position]
        if not later:
            if position > last_success or acts(call.name) or last_success < 0:
                yield position, call.failure
        elif _is_named_alone(position, later, response):
            yield position, call.failure
        elif len(later) < len(others) and call.arguments is not None:
            own = equality_key(call.arguments)
            if all(
                calls[other].arguments is not None and equality_key(calls[other].arguments) != own
                for other in later
            ):
                yield position, call.failure


def _is_named_alone(position: int, later: list[int], response: Response) -> bool:
    """Whether the answer names what a failed action was for, and no later success was for the same."""
    call = response.calls[position]
    if not acts(call.name) or call.failure is None or call.failure.error_class is ErrorClass.ARGUMENT:
        return False
    output = folded(response.output)
    own = {folded(text) for text in (call.arguments or {}).values() if isinstance(text, str)}
    done = {folded(str(text)) for other in later for text in (response.calls[other].arguments or {}).values()}
    return any(len(text) > 3 and text in output for text in own - done)


def _tells_of(position: int, response: Response) -> bool:
    """Whether the answer repeats what a refusal came with and nobody had said: times, dates, names."""
    user = folded(response.user_text)
    output = folded(response.output)
    moments = [m for m in response.ledger.moments if m.call == position and m.is_whole]
    for token in response.tokens:
        for moment in moments if token.kind in ("date", "time") else ():
            if token.kind == "time" and moment.minutes == token.minutes:
                return True
            if any(agree(day, other) for day in moment.dates for other in token.dates):
                return True
    texts = [str(leaf.value) for leaf in response.ledger.leaves if leaf.call == position]
    return any(len(w := folded(text)) > 4 and w in output and w not in user for text in texts)


def acts(name: str) -> bool:
    """Whether a tool does something, by its name, so that no other tool's success stands in for it."""
    return any(word.startswith(ACTION_VERBS) for word in key_words(name))


def futile_repetitions(response: Response, settings: Settings) -> Iterator[Finding]:
    """RH5: a call with a permanent or unknown error made again, or a retryable one too often.

    Calls of other tools do not break a streak; a success or other arguments do.
    """
    streaks: dict[str, tuple[object, list[ErrorClass]]] = {}
    for position, call in enumerate(response.calls):
        failure = call.failure
        if failure is None or failure.error_class is ErrorClass.ARGUMENT or call.arguments is None:
            streaks.pop(call.name, None)
            continue
        key = equality_key(call.arguments)
        streak = streaks.get(call.name)
        if streak is None or streak[0] != key:
            streak = streaks[call.name] = (key, [])
        streak[1].append(failure.error_class)
        final = sum(error is not ErrorClass.RETRYABLE for error in streak[1])
        before = final - (failure.error_class is not ErrorClass.RETRYABLE)
        most = settings.retryable_attempts
        if (final >= _FUTILE or len(streak[1]) >= most) and not (before >= _FUTILE or len(streak[1]) > most):
            yield Finding(
                "RH5", call.name, f"{call.name} repeated unchanged after: {failure.summary}", "", position
            )


def uncorrected_arguments(response: Response, settings: Settings) -> Iterator[Finding]:
    """RH6: refused arguments that the next call of the tool repeats, or after which nothing was said."""
    calls = response.calls
    following: dict[str, int] = {}
    found: list[Finding] = []
    for position in range(len(calls) - 1, -1, -1):
        call = calls[position]
        later = following.get(call.name)
        following[call.name] = position
        failure = call.failure
        if failure is None or failure.error_class is not ErrorClass.ARGUMENT:
            continue
        if later is None:
            if response.is_answered and response.words.language and not admits_trouble(response, settings):
                found.append(
                    Finding(
                        "RH6",
                        shown(response.output),
                        f"neither corrected nor admitted: {failure.summary}",
                        "",
                        position,
                    )
                )
            continue
        other = calls[later]
        if (
            other.failure is not None
            and call.arguments is not None
            and other.arguments is not None
            and equal_values(call.arguments, other.arguments)
        ):
            found.append(
                Finding(
                    "RH6", call.name, f"{call.name} repeated unchanged after: {failure.summary}", "", later
                )
            )
    yield from reversed(found)


def ignored_results(response: Response, known: Sequence[Support]) -> Iterator[Finding]:
    """RH8: a result of which the answer says nothing, and which no later call used."""
    output = folded(response.output)
    matched = {quantity.call for support in known for quantity in support.direct}
    told = {
        moment.call
        for token in response.tokens
        if token.dates
        for moment in response.ledger.moments
        for day in moment.dates
        if any(agree(day, other) for other in token.dates)
    }
    told |= {
        moment.call
        for token in response.tokens
        if token.kind == "time"
        for moment in response.ledger.moments
        if moment.minutes is not None and (moment.minutes - token.minutes) % 30 == 0
    }
    last = response.last_calls
    for position, call in enumerate(response.calls):
        if (
            call.failure is not None
            or not call.result_known
            or position in matched
            or position in told
            or position not in last
        ):
            continue
        leaves = [leaf for leaf in response.ledger.leaves if leaf.call == position]
        telling = [
            leaf
            for leaf in leaves
            if leaf.value not in (None, "", True, False) and leaf.key.lower() not in CACHED_KEYS
        ]
        if (
            not telling
            or (
                any(isinstance(leaf.value, bool) for leaf in leaves) and "negation" not in response.categories
            )
            or any(key_words(leaf.key)[-1:] and key_words(leaf.key)[-1] in STATE_KEYS for leaf in leaves)
        ):
            continue
        later = folded(
            " ".join(shown(other.arguments) for other in response.calls[position + 1 :] if other.arguments)
        )
        user = folded(response.user_text)
        if any(_is_used(leaf, output, later, user) for leaf in telling):
            continue
        if len(telling) == 1 and (matched or told) and isinstance(telling[0].value, str):
            continue
        if any(s.how or not (s.is_checked or s.direct) for s in known) or (
            len(telling) > 40 and "negation" in response.categories
        ):
            continue
        yield Finding(
            "RH8",
            shown(response.output),
            f"nothing of {call.name}: {telling[0].key} {shown(telling[0].value)}",
            telling[0].path,
            position,
        )


def _is_used(leaf: Leaf, output: str, later: str, user: str) -> bool:
    whole = folded(str(leaf.value))
    if len(whole) > 1 and (whole in output or whole in later):
        return True
    if isinstance(leaf.value, str):
        for word in _WORD.findall(leaf.value.casefold()):
            stem = folded(word)[:6]
            if (
                (len(stem) >= 4 or not word.isascii())
                and stem in output
                and (stem not in user or len(leaf.value) > 200)
                and word not in lexicon("en").function
            ):
                return True
    return False
