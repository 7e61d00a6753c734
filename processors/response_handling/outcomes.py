"""Rules RH4 to RH6, RH8, RH9 and RH12: how calls ended, against what the answer says of it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from processors.comparison import equal_values, equality_key
from processors.model import JsonValue
from processors.response_handling.failures import ErrorClass
from processors.response_handling.ledger import Leaf, folded
from processors.response_handling.lexicon import lexicon
from processors.response_handling.lexicons.keys import (
    ACTIONS,
    BAD_FLAGS,
    CACHED_KEYS,
    CHANGE_KEYS,
    FAILED,
    GOOD_FLAGS,
    MORE_KEYS,
    OPPOSITES,
    PENDING,
    STATE_KEYS,
    TOTAL_KEYS,
)
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.numbers import Support
from processors.response_handling.reading import agree
from processors.response_handling.response import Finding, Response, shown

_ACTION_VERBS = (
    "send", "create", "delete", "update", "book", "pay", "transfer", "cancel", "add", "post", "write", "move", "set",  # noqa: E501
    "schedul", "email", "notify", "submit", "remove", "publish", "upload", "deploy", "order", "reserv", "refund", "stuur",  # noqa: E501
    "env", "crea", "supprim", "elimin", "inv", "buch", "sende", "lösch", "wyslij", "dodaj", "boek", "verwijder", "ajout",  # noqa: E501
)  # fmt: skip
_FROM_TO = re.compile(
    r"\s?[^\W\d]{0,12}\.?\s?(?:to|auf|do|a|à|para|até|naar|al|fino a|に|へ|到|至)\s.{0,4}|\s?(?:から|到|至).{0,3}|\s?(?:→|->)\s?",  # noqa: E501
    re.IGNORECASE,
)
_NO_TROUBLE = re.compile(
    r"\b(?:no|without|zero|any|free of)(?: [a-z]{1,20})? (?:errors?|problems?|troubles?|issues?|failures?)\b",
    re.IGNORECASE,
)
_STEM_WORD = re.compile(r"[^\W\d_]{4,40}")
_ANY_WORD = re.compile(r"[^\W\d_]{1,40}(?:['’][^\W\d_]{1,4})?")
_PLAN = re.compile(
    r"\b(?:dry[- ]run|would (?:be|have been) [a-z]{3,20}ed|nothing (?:has been|was) [a-z]{3,20}ed"
    r"|no changes (?:were|have been) made)\b",
    re.IGNORECASE,
)
_DATED = re.compile(r"\d{4}-\d{2}")
_PERIODS = frozenset(
    [
        "bimestre",
        "trimestre",
        "quarter",
        "semestre",
        "semester",
        "quartal",
        "week",
        "month",
        "year",
        "day",
        "period",
        "jahr",
        "monat",
        "woche",
    ]
)
_MOST_LEAVES = 400
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
    if (response.words.language or "en") == "en":
        return bool(
            response.words.categories(_NO_TROUBLE.sub(" ", response.output)) & {"negation", "failure", "no"}
        )
    return bool(response.categories & {"negation", "failure", "no"})


def hidden_errors(response: Response, settings: Settings) -> Iterator[Finding]:
    """RH4: an error that no later success makes good nor the answer admits; RH9.a: a success claimed.

    Argument errors are RH6's matter. That a thing does not exist often is the answer, which then says no.
    """
    calls = response.calls
    last_success = max((position for position, call in enumerate(calls) if call.failure is None), default=-1)
    last_of_tool = {call.name: position for position, call in enumerate(calls)}
    hidden = []
    for position, call in enumerate(calls):
        failure = call.failure
        if failure is None:
            continue
        if (
            settings.require_retry
            and failure.error_class is ErrorClass.RETRYABLE
            and last_of_tool[call.name] == position
        ):
            yield Finding(
                "RH4", f"no further call of {call.name}", f"not tried again: {failure.summary}", "", position
            )
        elif (
            position > last_success
            or (last_of_tool[call.name] == position and _acts(call.name))
            or (last_of_tool[call.name] == position and last_success < 0)
        ):
            hidden.append((position, failure))
    if not hidden or not response.is_answered or not response.words.language:
        return
    if admits_trouble(response, settings):
        return
    for position, failure in hidden[:_MAX_SHOWN]:
        if failure.error_class is not ErrorClass.ARGUMENT:
            yield Finding("RH4", shown(response.output), f"not admitted: {failure.summary}", "", position)
    if "done" in response.categories or "yes" in response.categories:
        yield Finding(
            "RH9.a",
            shown(response.output),
            f"{calls[hidden[-1][0]].name} failed: {hidden[-1][1].summary}",
            "",
            hidden[-1][0],
        )


def _acts(name: str) -> bool:
    """Whether a tool does something, by its name, so that no other tool's success stands in for it."""
    return any(word.startswith(_ACTION_VERBS) for word in key_words(name))


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


def reversed_states(response: Response, known: Sequence[Support], settings: Settings) -> Iterator[Finding]:
    """RH9.b: a state that is not done told as done.

    RH9.c: a false flag told as true; RH9.d: a trend turned round.
    """
    categories = response.categories
    if not categories & {"negation", "failure", "no"}:
        yield from _states(response)
        yield from _flags(response)
        yield from _plans(response)
    yield from opposite_states(response)
    yield from _trends(response, known)


def _current(response: Response) -> list[Leaf]:
    """The values of results that no later call of the same tool and target replaced."""
    last = _last_calls(response)
    return [leaf for leaf in response.ledger.leaves if leaf.call in last]


def _last_calls(response: Response) -> set[int]:
    last: dict[object, int] = {}
    for position, call in enumerate(response.calls):
        if call.failure is None:
            last[call.name, _target(call.arguments)] = position
    return set(last.values())


def _target(arguments: JsonValue) -> object:
    if not isinstance(arguments, dict):
        return None
    return equality_key(
        {
            key: value
            for key, value in arguments.items()
            if not isinstance(value, bool) and key.lower() not in CACHED_KEYS
        }
    )


def _state_class(value: str, response: Response) -> str:
    words = {*key_words(value)}
    if words & {"not", "un", "no"}:
        return "failed"
    if words & FAILED or words & PENDING:
        return "failed" if words & FAILED else "pending"
    if not value.isascii() and not response.words.is_spaced:
        found = response.words.categories(value)
        return "pending" if "pending" in found else "failed" if "failure" in found else ""
    return ""


def opposite_states(response: Response) -> Iterator[Finding]:
    """RH9.b as well: the one state that the results have, told as its opposite."""
    said = {word.lower() for word in _STEM_WORD.findall(response.output)}
    values = [leaf for leaf in _current(response) if isinstance(leaf.value, str) and len(leaf.value) < 16]
    for pair in OPPOSITES:
        for value, other in (pair, pair[::-1]):
            leaves = [leaf for leaf in values if str(leaf.value).lower() in pair]
            if (
                len(leaves) == 1
                and str(leaves[0].value).lower() == value
                and other in said
                and value not in said
            ):
                if "negation" not in response.words.categories(_around(other, response.output)):
                    yield Finding("RH9.b", other, f"{leaves[0].key}: {value}", leaves[0].path, leaves[0].call)
                    return


def _around(word: str, text: str) -> str:
    place = text.lower().find(word)
    return text[max(0, place - 24) : place + len(word)]


def _states(response: Response) -> Iterator[Finding]:
    categories = response.categories
    if not categories & {"done", "yes", "all"}:
        return
    states = [
        leaf
        for leaf in _current(response)
        if isinstance(leaf.value, str)
        and len(leaf.value) < 40
        and key_words(leaf.key)[-1:]
        and key_words(leaf.key)[-1] in STATE_KEYS
    ]
    said = folded(response.output)
    for leaf in states:
        kind = _state_class(str(leaf.value), response)
        if (
            not kind
            or folded(str(leaf.value)) in said
            or any(len(word) > 4 and word[:6] in said for word in key_words(str(leaf.value)))
        ):
            continue
        siblings = [other for other in states if other.key == leaf.key and other.call == leaf.call]
        if kind == "pending" and (
            "pending" in categories or (leaf.value == "open" and "done" not in categories)
        ):
            continue
        if len(siblings) == 1:
            yield Finding(
                "RH9.b", shown(response.output), f"{leaf.key}: {shown(leaf.value)}", leaf.path, leaf.call
            )
            return
        record = response.ledger.records[leaf.record]
        is_named = any(
            len(text) > 2 and folded(text) in said for _, text in record.texts if text != leaf.value
        )
        if kind == "failed" and ("all" in categories or is_named):
            yield Finding(
                "RH12.1", shown(response.output), f"{leaf.key}: {shown(leaf.value)}", leaf.path, leaf.call
            )
            return


def _flags(response: Response) -> Iterator[Finding]:
    categories = response.categories
    leaves = _current(response)
    flags = [leaf for leaf in leaves if isinstance(leaf.value, bool)]
    is_yes = _starts_with_yes(response)
    words = {
        word[:5]
        for word in re.findall(r"[^\W\d_]{4,30}", (response.output + " " + response.question).lower())
    }
    said = {word[:5] for word in re.findall(r"[^\W\d_]{4,30}", response.output.lower())}
    for leaf in flags:
        parts = key_words(leaf.key)
        if leaf.key.lower() in ("dry_run", "dryrun", "simulated", "preview", "test_mode"):
            if leaf.value and "done" in categories and not categories & {"pending"}:
                yield Finding("RH12.3", shown(response.output), f"{leaf.key}: true", leaf.path, leaf.call)
            continue
        if (
            leaf.value
            or len([other for other in flags if other.key == leaf.key]) > 1
            or ("pending" in categories and not is_yes)
        ):
            continue
        is_good = not GOOD_FLAGS.isdisjoint(parts)
        is_named = any(part[:5] in words for part in parts if len(part) > 3)
        is_said = any(part[:5] in said for part in ("available", *parts) if len(part) > 3)
        lone = all(not other.value for other in flags)
        is_done = "done" in categories and len(parts) == 1
        is_told = (
            is_yes
            and lone
            and all(part[:5] in said for part in parts if len(part) > 3)
            and not BAD_FLAGS & {*parts}
        )
        if is_told or (
            is_good
            and ((lone and (is_done or is_said or is_yes or ACTIONS & {*parts})) or (is_yes and is_named))
        ):
            yield Finding("RH9.c", shown(response.output), f"{leaf.key}: false", leaf.path, leaf.call)
            return


def _plans(response: Response) -> Iterator[Finding]:
    """RH12.3 as well: a text that says that nothing was changed yet."""
    if "done" not in response.categories or "pending" in response.categories:
        return
    for leaf in _current(response)[:_MOST_LEAVES]:
        if leaf.call >= 0 and isinstance(leaf.value, str) and (found := _PLAN.search(leaf.value[:20_000])):
            yield Finding("RH12.3", shown(response.output), found[0], leaf.path, leaf.call)
            return


def _starts_with_yes(response: Response) -> bool:
    head = response.output.lstrip("*_ ")[:12]
    return "yes" in response.words.categories(head if response.words.is_spaced else head[:3])


def _trends(response: Response, known: Sequence[Support]) -> Iterator[Finding]:
    for start, end in response.sentences:
        inside = [support for support in known if start <= support.token.start < end]
        if not inside:
            continue
        said = response.words.categories(response.output[start:end])
        if ("up" in said) == ("down" in said) or "negation" in said:
            continue
        sign = 1 if "up" in said else -1
        claim = shown(response.output[start:end])
        for support in inside:
            for quantity in support.direct:
                if (
                    quantity.call >= 0
                    and quantity.value * sign < 0
                    and not CHANGE_KEYS.isdisjoint(key_words(quantity.key))
                    and not support.token.is_negative
                ):
                    yield Finding(
                        "RH9.d",
                        claim,
                        f"{quantity.key} is {quantity.value:.10g}",
                        quantity.path,
                        quantity.call,
                    )
                    return
        yield from _turned_difference(response, inside, sign, claim)
        plain = [
            support
            for support in inside
            if support.direct and not (support.token.unit and support.token.unit.dimension == "percent")
        ]
        for one, other in pairwise(plain):
            between = response.output[one.token.end : other.token.start]
            a, b = one.token.value, other.token.value
            if len(between) <= 16 and _FROM_TO.fullmatch(between) and a != b and (b - a) * sign < 0:
                yield Finding(
                    "RH9.d",
                    claim,
                    f"from {one.token.text} to {other.token.text}",
                    other.direct[0].path,
                    other.direct[0].call,
                )
                return


def _turned_difference(
    response: Response, inside: Sequence[Support], sign: int, claim: str
) -> Iterator[Finding]:
    """A difference of two rows in order of time, told with the wrong direction."""
    for records in response.ledger.groups.values():
        if len(records) != 2:
            continue
        first = {quantity.key: quantity for quantity in records[0].numbers if quantity.is_member}
        second = {quantity.key: quantity for quantity in records[1].numbers if quantity.is_member}
        shared = [key for key in first if key in second]
        orders = [
            first[key].value < second[key].value
            for key in shared
            if not first[key].is_operand or key in _PERIODS
        ]
        dated = [text for record in records for _, text in record.texts if _DATED.match(text)]
        if not (orders and all(orders)) and not (len(dated) == 2 and dated[0] < dated[1]):
            continue
        for key in shared:
            change = second[key].value - first[key].value
            for support in inside:
                if (
                    support.how
                    and change * sign < 0
                    and abs(abs(change) - support.token.value) < 1e-9 * abs(change) + 1e-9
                ):
                    where = second[key]
                    yield Finding(
                        "RH9.d",
                        claim,
                        f"{key} went from {first[key].value:.10g} to {where.value:.10g}",
                        where.path,
                        where.call,
                    )
                    return


def incomplete_results(response: Response, known: Sequence[Support]) -> Iterator[Finding]:
    """RH12.2: the first page taken for all; RH12.4: a value that a later call of the same target replaced."""
    categories = response.categories
    ledger = response.ledger
    for entry in ledger.result_lists:
        if entry.length < 1:
            continue
        near = [
            leaf
            for leaf in ledger.leaves
            if leaf.call == entry.call and "." not in leaf.path and "[" not in leaf.path
        ]
        more = next(
            (leaf for leaf in near if leaf.key.lower() in MORE_KEYS and leaf.value not in (None, False, "")),
            None,
        )
        total = next(
            (
                leaf
                for leaf in near
                if leaf.key.lower() in TOTAL_KEYS
                and isinstance(leaf.value, int)
                and leaf.value > entry.length
            ),
            None,
        )
        if more is None and total is None:
            continue
        told = total is not None and any(
            float(total.value) in support.token.values for support in known if isinstance(total.value, int)
        )
        counted = next(
            (
                support
                for support in known
                if float(entry.length) in support.token.values and not support.token.currencies
            ),
            None,
        )
        if not told and counted is not None and not categories & {"approx"} and "." not in entry.path:
            first = re.search(
                r"first|at least|so far|page|erste|premi|primer|prim|eerste|pierwsz|前|最初|最近|latest|recent|top",  # noqa: E501
                response.output.lower(),
            )
            if first is None:
                leaf = total or more
                yield Finding(
                    "RH12.2",
                    shown(response.output[counted.token.start :]),
                    f"{leaf.key if leaf else ''}: {leaf.value if leaf else ''}",
                    leaf.path if leaf else "",
                    entry.call,
                )
                return
    last = _last_calls(response)
    for support in known:
        calls = {quantity.call for quantity in support.direct}
        if not calls or min(calls) < 0 or calls & last:
            continue
        old = support.direct[0]
        for quantity in ledger.quantities:
            if (
                quantity.call in last
                and (quantity.key, quantity.path) == (old.key, old.path)
                and quantity.value != old.value
                and response.calls[quantity.call].name == response.calls[old.call].name
            ):
                what = f"{quantity.key} is {quantity.value:.10g} since"
                yield Finding("RH12.4", support.token.text, what, quantity.path, quantity.call)
                return


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
    last = _last_calls(response)
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
        for word in re.findall(r"[^\W_]{2,40}", leaf.value.casefold()):
            stem = folded(word)[:6]
            if (
                (len(stem) >= 4 or not word.isascii())
                and stem in output
                and (stem not in user or len(leaf.value) > 200)
                and word not in lexicon("en").function
            ):
                return True
    return False


def unheard_negations(response: Response) -> Iterator[Finding]:
    """RH9.e: what a text of a result forbids or denies, told without any negation."""
    if (
        response.categories & {"negation", "no", "failure"}
        or not response.words.language
        or not response.words.is_spaced
    ):
        return
    said = {word[:5] for word in _STEM_WORD.findall(response.output.lower())}
    negations = (response.words, lexicon("en"))
    for leaf in response.ledger.leaves[:200]:
        if leaf.call < 0 or not isinstance(leaf.value, str) or len(leaf.value) < 12 or " " not in leaf.value:
            continue
        words = _ANY_WORD.findall(leaf.value[:4000].lower())
        for place, word in enumerate(words):
            if not any("negation" in lexicon_.categories(word) for lexicon_ in negations):
                continue
            following = [other for other in words[place + 1 : place + 7] if len(other) > 3][:3]
            if len(following) >= 2 and all(other[:5] in said for other in following):
                claim = " ".join((word, *following))
                yield Finding(
                    "RH9.e", shown(response.output), f"{leaf.key}: {shown(claim)}", leaf.path, leaf.call
                )
                return


def told_from_nothing(response: Response, known: Sequence[Support]) -> Iterator[Finding]:
    """RH12.6: particulars where every result is empty."""
    calls = [call for call in response.calls if call.failure is None]
    if not calls or not all(call.result_known and _is_empty(call.result) for call in calls):
        return
    if response.categories & {"negation", "no", "failure"} or not response.words.language:
        return
    first = next((support for support in known if not support.is_supported), None)
    if first is not None or _starts_with_yes(response):
        claim = first.token.text if first is not None else response.output
        yield Finding(
            "RH12.6", shown(claim), f"{calls[-1].name} returned nothing", "", len(response.calls) - 1
        )


def _is_empty(value: JsonValue) -> bool:
    """Whether a result is a list without items, or an object that holds such a list, or a count of 0."""
    if isinstance(value, list):
        return not value
    if not isinstance(value, dict):
        return False
    lists = [member for member in value.values() if isinstance(member, list)]
    counts = [member for key, member in value.items() if key.lower() in TOTAL_KEYS]
    return (bool(lists) or 0 in counts) and not any(lists) and all(count in (0, None) for count in counts)
