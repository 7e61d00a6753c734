"""Numbers that stand in the evidence but belong to another thing than the answer says."""

import re
from collections import defaultdict
from itertools import pairwise

from processors.response_checks.answer_facts import AnswerFacts
from processors.response_checks.check_result import Violation, violation
from processors.texts.folded_text import folded

_CLAUSE_END = re.compile(r"[.!?](?=\s|$)|[;\n]|,? (?:and|while|whereas|but)\b|,\s")
_MAX_THINGS = 30
_LONGEST_NAME = 40
_SHORTEST_NAME = 3


def misplaced_numbers(check: str, facts: AnswerFacts) -> list[Violation]:
    """Violations where clauses that each name one thing state the numbers of each other.

    Things are what the results tell apart by a text: the arguments of calls of one tool, or the objects of
    a list. Only a full exchange counts: both clauses state a number that only the other thing has.
    """
    if len(facts.numbers) < 2:
        return []
    numbers = _numbers_by_thing(facts)
    if len(numbers) < 2:
        return []
    clauses = _clauses(facts, list(numbers))
    taken: dict[str, tuple[str, str]] = {}
    for thing, tokens in clauses:
        own = numbers[thing]
        for value, text in tokens:
            owners = [other for other, values in numbers.items() if value in values]
            if value not in own and len(owners) == 1:
                taken.setdefault(thing, (owners[0], text))
    return [
        violation(check, None, f"belongs to {other}, not to {thing}: {text}")
        for thing, (other, text) in taken.items()
        if other in taken and taken[other][0] == thing
    ]


def _numbers_by_thing(facts: AnswerFacts) -> dict[str, set[float]]:
    response = facts.response
    by_tool: dict[str, list[int]] = defaultdict(list)
    for position, call in enumerate(response.calls):
        if call.failure is None:
            by_tool[call.name].append(position)
    groups: dict[str, set[float]] = {}
    for positions in by_tool.values():
        if len(positions) < 2:
            continue
        for position in positions:
            names = [
                value
                for value in (response.calls[position].arguments or {}).values()
                if isinstance(value, str) and _SHORTEST_NAME <= len(value) <= _LONGEST_NAME
            ]
            if len(names) == 1:
                groups.setdefault(folded(names[0]), set()).update(
                    abs(float(leaf.value))
                    for leaf in response.result_leaves(position)
                    if isinstance(leaf.value, (int, float)) and not isinstance(leaf.value, bool)
                )
    owners: dict[tuple[int, int], tuple[list[str], set[float]]] = {}
    for leaf in response.result_leaves():
        names, values = owners.setdefault((leaf.call, leaf.owner), ([], set()))
        if isinstance(leaf.value, str):
            if _SHORTEST_NAME <= len(leaf.value) <= _LONGEST_NAME and not leaf.value[0].isdigit():
                names.append(leaf.value)
        elif not isinstance(leaf.value, bool):
            values.add(abs(float(leaf.value)))
    for names, values in owners.values():
        if names and values:
            groups.setdefault(folded(names[0]), set()).update(values)
    return dict(list(groups.items())[:_MAX_THINGS])


def _clauses(facts: AnswerFacts, things: list[str]) -> list[tuple[str, list[tuple[float, str]]]]:
    """The clauses that name exactly one of `things`, with their numbers."""
    output = facts.output
    bounds = [0, *(match.end() for match in _CLAUSE_END.finditer(output)), len(output)]
    found = []
    for start, end in pairwise(bounds):
        text = folded(output[start:end])
        named = [thing for thing in things if thing in text]
        tokens = [
            (reading.magnitude, token.text)
            for token in facts.numbers
            if start <= token.start < end
            for reading in token.readings
        ]
        if len(named) == 1 and tokens:
            found.append((named[0], tokens))
    return found
