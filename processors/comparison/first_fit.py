"""Assignment of expected calls to actual calls, first fit in written order.

Each expectation takes the first call, in order of execution, that is of its tool, not taken yet, and fits.
Order is not compared. The assignment is greedy on purpose: it is the rule of the evaluation sets that
these evaluators read, and every attempt appears in the details.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from processors.model.agent_run import ToolCall
from processors.model.limits import MAX_ASSIGNMENT_ATTEMPTS, MAX_EXPLANATION_CHARACTERS
from processors.model.tool_name import canonical_tool_name, canonical_tool_names


@dataclass(frozen=True, slots=True)
class ExpectedKey:
    """Which calls an expectation means.

    With an `id`: the calls with that id and, by `name`, those that carry no id. Without: the calls whose
    name or id is `name`.
    """

    name: str
    id: str | None = None

    def texts(self) -> Iterable[str]:
        """The texts that can name a call."""
        return (self.name,) if self.id is None else (self.name, self.id)


@dataclass(slots=True)
class Assignment:
    """What came of the attempts.

    `attempts` holds (expectation, call, fits) in the order tried, with `fits` None where the call's value
    is not known. `unknown` is the first such call. `unmatched` is the expectation at which a search with
    `first_only` ended because no call of its tool was left. `over_limit`: the search was given up.
    """

    fitted: int = 0
    attempts: list[tuple[int, int, bool | None]] = field(default_factory=list)
    unknown: int | None = None
    unmatched: int | None = None
    over_limit: bool = False


class FirstFit:
    """Assigns calls to a fixed list of expectations."""

    __slots__ = ("_expected", "_ids")

    def __init__(self, expected: Sequence[ExpectedKey]) -> None:
        self._expected = [(canonical_tool_name(key.name), key.name, key.id) for key in expected]
        self._ids = frozenset(key.name if key.id is None else key.id for key in expected)

    def assign(
        self,
        calls: Sequence[ToolCall],
        fits: Callable[[int, int], bool | None],
        *,
        first_only: bool = False,
    ) -> Assignment:
        """Try the calls of each expectation in order; `fits(expectation, call)` is asked for each pair.

        A call whose value is not known (`fits` says None) is passed over. With `first_only` only the first
        free call of an expectation is tried, and the search ends at the first that does not fit.
        """
        names = canonical_tool_names(calls)
        free_by_name: dict[str, list[int]] = {}
        for position, name in enumerate(names):
            if name in free_by_name:
                free_by_name[name].append(position)
            else:
                free_by_name[name] = [position]
        ids = self._ids
        by_id: dict[str, list[int]] = {}
        for position in [position for position, call in enumerate(calls) if call.call_id in ids]:
            by_id.setdefault(calls[position].call_id or "", []).append(position)

        result = Assignment()
        attempts = result.attempts
        tried = attempts.append
        used: set[int] = set()
        for index, (name, text, call_id) in enumerate(self._expected):
            candidates: Sequence[int] = free_by_name.get(name, ())
            if call_id is not None:
                unnamed = [position for position in candidates if calls[position].call_id is None]
                candidates = sorted({*unnamed, *by_id.get(call_id, ())} - used)
            elif text in by_id:
                candidates = sorted({*candidates, *by_id[text]} - used)
            if first_only and not candidates:
                result.unmatched = index
                return result
            for position in candidates:
                if len(attempts) == MAX_ASSIGNMENT_ATTEMPTS:
                    result.over_limit = True
                    return result
                verdict = fits(index, position)
                tried((index, position, verdict))
                if verdict:
                    result.fitted += 1
                    free_by_name[names[position]].remove(position)  # the list that is gone through ends here
                    if by_id:
                        used.add(position)
                    break
                if verdict is None and result.unknown is None:
                    result.unknown = position
                if first_only:
                    return result
        return result

    def explain(
        self,
        calls: Sequence[ToolCall],
        attempts: Iterable[tuple[int, int, bool | None]],
        actual: Callable[[int], str],
        endings: Sequence[tuple[str, str]],
    ) -> dict[str, str]:
        """One entry for each attempt: `{tool}_{number of the attempt}` and what was compared.

        Args:
            calls: The calls that were assigned.
            attempts: What `assign` tried.
            actual: Gives the text of a call, by its position.
            endings: `explained_endings` of the texts of the expectations.
        """
        explained: dict[str, str] = {}
        tries: dict[str, int] = {}
        for index, position, fits in attempts:
            name = calls[position].name
            number = tries.get(name, 0)
            tries[name] = number + 1
            misfits, fitted = endings[index]
            explained[f"{name}_{number}"] = f"Actual: {actual(position)}{fitted if fits else misfits}"
        return explained

    def explained_lines(
        self,
        calls: Sequence[ToolCall],
        attempts: Iterable[tuple[int, int, bool | None]],
        actual: Callable[[int], str],
        endings: Sequence[tuple[str, str]],
    ) -> tuple[str, ...]:
        """What `explain` says as lines, as many as an explanation can show."""
        lines: list[str] = []
        tries: dict[str, int] = {}
        room = MAX_EXPLANATION_CHARACTERS
        for index, position, fits in attempts:
            name = calls[position].name
            number = tries.get(name, 0)
            tries[name] = number + 1
            misfits, fitted = endings[index]
            line = f"{name}_{number}: Actual: {actual(position)}{fitted if fits else misfits}"
            lines.append(line)
            room -= len(line)
            if room < 0:
                break
        return tuple(lines)


def explained_endings(expected: Iterable[str]) -> list[tuple[str, str]]:
    """How the entries of `FirstFit.explain` end, for each text: where a call misses it, and where it fits."""
    return [(f", Expected: {text}, Score: 0.0", f", Expected: {text}, Score: 1.0") for text in expected]
