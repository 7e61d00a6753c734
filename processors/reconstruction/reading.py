"""Which dialects read a span, and what it stands for: found out once for spans that look alike.

What every dialect's `role` looks at in the first span of a kind is noted; spans that give the same answers
are of the same shape. So the questions form a tree, which builds itself: first the scope's name and which of
the known attribute keys are there, then the values and the span's name, as far as anybody looked at them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from processors.shapes import (
    CONVERSATION_KEYS,
    USAGE_KEYS,
    Dialect,
    Shape,
    SpanReading,
    SpanRole,
    usage_plan,
)
from processors.spans import NATIVE, Attributes, Envelope, Span

_MAX_NODES = 4096
"""Nodes of the tree; a tree that is full is begun anew."""
_MAX_KEY_LISTS, _MAX_KEY_LIST = 1024, 2048
"""Lists of keys, and characters of one, whose known keys are remembered; else they are looked for."""
_MAX_ANSWERS, _MAX_ANSWER = 128, 64
"""Answers to one question, and bytes or characters of one, that are remembered; else dialects are queried."""

_NAME: Final = "the span's name"
_EMPTY: Final = "no attributes"


@dataclass(slots=True, eq=False)
class _Question:
    """What decides between spans that are alike so far.

    It is an attribute's value, whether its text mentions one of some words, or one of the two above.
    """

    about: "_About"
    answers: "dict[_Answer, _Node]" = field(default_factory=dict)


_About: TypeAlias = str | tuple[str, tuple[str, ...]]
_Answer: TypeAlias = bytes | str | bool | None
_Node: TypeAlias = "_Question | Shape | None"
"""A further question, or the shape; None: no dialect recognises such spans."""


class _NoShape(Shape):
    __slots__ = ()


_UNKNOWN, _UNLIKE = _NoShape(SpanRole.OTHER, ()), _NoShape(SpanRole.OTHER, ())
"""In place of the shape: nothing is remembered; what decides is something else than is remembered."""

_NEVER_SEEN: Final = (-1, frozenset[str](), _UNKNOWN)


class _Known(NamedTuple):
    """What the reader in Rust reads spans by that are like ones seen before."""

    seen: "dict[str, tuple[int, frozenset[str], _Node]]"
    question: type[_Question] = _Question
    shape: type[Shape] = Shape
    reading: type[SpanReading] = SpanReading
    about_name: str = _NAME
    about_attributes: str = _EMPTY


class SpanReader:
    """Reads spans with a set of dialects."""

    def __init__(self, dialects: Sequence[Dialect]) -> None:
        """`dialects` in order of rank."""
        self._dialects = dialects
        self._dialect_keys = frozenset(key for dialect in dialects for key in dialect.keys)
        self._keys = self._dialect_keys.union(
            USAGE_KEYS, CONVERSATION_KEYS, *[dialect.tool_keys for dialect in dialects]
        )
        """The keys by which spans differ: those that roles turn out to look at join them."""
        self._tree: dict[tuple[str, frozenset[str]], _Node] = {}
        """By the scope's name and the known keys that are there."""
        self._seen: dict[str, tuple[int, frozenset[str], _Node]] = {}
        """For the scope's name and all keys of a span, joined by zeros: how many keys, the known, and where
        the questions begin."""
        self._known = _Known(self._seen)
        self._candidates: dict[frozenset[str], Sequence[Dialect]] = {}
        self._nodes = 0
        self._of_scope = {scope: dialect for dialect in reversed(dialects) for scope in dialect.scopes}

    def read(self, span: Span) -> SpanReading | None:
        """The span as its dialects read it, or None if none recognises it."""
        return self.read_all((span,))[0]

    def read_all(self, spans: Sequence[Span]) -> list[SpanReading | None]:
        """The spans as their dialects read them, None for each that none recognises."""
        known = None if NATIVE is None else NATIVE.known_readings(spans, self._known)
        if known is None:
            return self._read_each(spans)
        readings, unknown = known
        for position in unknown:
            (readings[position],) = self._read_each((spans[position],))
        return readings

    def _read_each(self, spans: Iterable[Span]) -> list[SpanReading | None]:
        seen = self._seen.get
        readings: list[SpanReading | None] = []
        for span in spans:
            encoded, name = span.by_key, span.envelope.known_scope
            if name is None:
                name = span.envelope.scope_name
            # One text is hashed and compared for less than half of what every key by itself costs. Whatever
            # else joins to it has more zeros in it, and so fewer keys.
            joined = "\0".join([name, *encoded])
            count, present, node = seen(joined, _NEVER_SEEN)
            if count != len(encoded):
                present = self._keys.intersection(encoded)
                node = self._root(name, joined, len(encoded), present)
            answer: _Answer = None
            question: _Question | None = None
            while node.__class__ is _Question:  # cheaper than isinstance, here at every span
                question = node
                about = question.about
                if about is _NAME:
                    answer = span.name
                elif about is _EMPTY:
                    answer = not encoded
                elif isinstance(about, tuple):
                    answer = span.attributes.mentions(about[0], *about[1])
                else:
                    answer = encoded[about]  # it is there; `get` takes its arguments apart first
                node = question.answers.get(answer, _UNKNOWN)
            if node is _UNKNOWN or node is _UNLIKE:
                if (
                    node is _UNLIKE
                    or _is_long(name)
                    or _is_long(answer)
                    or (question and len(question.answers) >= _MAX_ANSWERS)
                ):
                    node = self._query(span, present)
                else:
                    node = self._learn(span, present)
            # No question: the loop above has ended.
            readings.append(None if node is None else SpanReading(span, node))  # type: ignore[arg-type]
        return readings

    def _root(self, scope: str, joined: str, count: int, present: frozenset[str]) -> _Node:
        """Where the questions about a span begin, remembered by all its keys."""
        node = self._tree.get((scope, present), _UNKNOWN)
        if node is not _UNKNOWN and len(joined) <= _MAX_KEY_LIST and joined.count("\0") == count:
            if len(self._seen) >= _MAX_KEY_LISTS:
                self._seen.clear()
            self._seen[joined] = count, present, node
        return node

    def _learn(self, span: Span, present: frozenset[str]) -> Shape | None:
        """Query the dialects, and remember their answer by what they looked at."""
        noted = _WatchedValues(span.by_key, self._keys, present)
        shape = self._query(_WatchedSpan(span, noted), present)
        if noted.new_keys or self._nodes >= _MAX_NODES:
            self._keys |= noted.new_keys  # by these, too, spans differ from now on
            self._tree.clear()
            self._seen.clear()
            self._candidates.clear()
            self._nodes = 0
        else:
            self._remember((span.envelope.scope_name, present), noted, shape)
        return shape

    def _remember(
        self, root: tuple[str, frozenset[str]], noted: "_WatchedValues", shape: Shape | None
    ) -> None:
        leaf = _UNLIKE if noted.looked_elsewhere else shape
        self._nodes += 1 + len(noted.answers)
        if not noted.answers:
            self._tree[root] = leaf
            return
        (about, answer), *further = noted.answers.items()
        question = self._tree.setdefault(root, _Question(about))
        for next_about, next_answer in further:
            if not isinstance(question, _Question) or _is_long(answer):
                return
            question = question.answers.setdefault(answer, _Question(next_about))
            answer = next_answer
        if isinstance(question, _Question) and not _is_long(answer):
            question.answers[answer] = leaf

    def _query(self, span: Span, present: frozenset[str]) -> Shape | None:
        if present.isdisjoint(self._dialect_keys):  # the span's scope may show it all the same
            of_scope = self._of_scope.get(span.envelope.scope_name)
            candidates: Sequence[Dialect] = () if of_scope is None else (of_scope,)
        else:
            candidates = self._candidates.get(present, ())
            if not candidates:
                candidates = [dialect for dialect in self._dialects if not present.isdisjoint(dialect.keys)]
                if len(self._candidates) < _MAX_NODES:
                    self._candidates[present] = candidates
        reported = [(role, dialect) for dialect in candidates if (role := dialect.role(span)) is not None]
        if not reported:
            return None
        role, result = max(role for role, _ in reported), [dialect for _, dialect in reported]
        only = result[0]
        common = present & USAGE_KEYS
        shape = Shape(
            role,
            result,
            usage_plan=usage_plan(common) if common else None,
            usage_readers=[dialect.usage for dialect in result if dialect.usage and dialect.has_usage(span)],
            names_conversation=not present.isdisjoint(CONVERSATION_KEYS),
        )
        if len(result) == 1:
            if role is SpanRole.TOOL and only.plan_tool is not None:
                shape.read_tool = only.plan_tool(present.intersection(only.tool_keys))
            shape.answer_key = only.answer_key
        return shape


def _is_long(answer: _Answer) -> bool:
    return isinstance(answer, (bytes, str)) and len(answer) > _MAX_ANSWER


class _WatchedValues(Mapping[str, bytes]):
    """The encoded attributes of a span; notes what is looked at in it, in order, and what was seen."""

    def __init__(self, encoded: Mapping[str, bytes], known: frozenset[str], present: frozenset[str]) -> None:
        """`known` are the keys by which spans differ, `present` those of them that are there."""
        self._encoded = encoded
        self._known = known
        self._present = present
        self.answers: dict[_About, _Answer] = {}
        self.new_keys: frozenset[str] = frozenset()
        self.looked_elsewhere = False
        """Whether what was seen may be different in the next span that gives the same answers."""

    def __getitem__(self, key: str) -> bytes:
        match = self.get(key)
        if match is None:
            raise KeyError(key)
        return match

    def get(self, key: str, default: bytes | None = None) -> bytes | None:  # type: ignore[override]
        """The value of `key`, or `default`."""
        match = self._encoded[key] if key in self else None
        if key in self._present:
            self.answers[key] = match
        return default if match is None else match

    def mentions(self, key: str, words: tuple[str, ...]) -> bool:
        """As in `Attributes`."""
        if key not in self:
            return False
        mentioned = Attributes(self._encoded).mentions(key, *words)
        if key in self._present:
            self.answers[key, words] = mentioned
        return mentioned

    def __contains__(self, key: object) -> bool:
        if key not in self._known:
            self.new_keys |= {str(key)}
        return key in self._encoded

    def __iter__(self) -> Iterator[str]:
        self.looked_elsewhere = True
        return iter(self._encoded)

    def __len__(self) -> int:
        self.answers[_EMPTY] = not self._encoded
        return len(self._encoded)


class _WatchedAttributes(Attributes):
    """Attributes that note in their values what is looked at."""

    __slots__ = ("_values",)

    def __init__(self, values: _WatchedValues) -> None:
        super().__init__(values)
        self._values = values

    def mentions(self, key: str, *words: str) -> bool:
        """See `Attributes`."""
        return self._values.mentions(key, words)


class _WatchedSpan(Span):
    """A span that notes in its values what is looked at."""

    __slots__ = ("_span",)

    def __init__(self, span: Span, values: _WatchedValues) -> None:
        super().__init__(span.raw, _WatchedEnvelope(span.envelope, values))
        self.by_key = values
        self._attributes = _WatchedAttributes(values)
        self._span = span

    def __getattribute__(self, name: str) -> object:
        """Note what is none of the things by which spans differ."""
        get = super().__getattribute__
        if name == "name":
            get("by_key").answers[_NAME] = get("_span").name
        elif name not in ("attributes", "_attributes", "by_key", "envelope", "message", "__class__"):
            get("by_key").looked_elsewhere = True
        return get(name)


class _WatchedEnvelope(Envelope):
    """An envelope that notes what is looked at in it."""

    __slots__ = ("_values",)

    def __init__(self, envelope: Envelope, values: _WatchedValues) -> None:
        super().__init__(envelope.resource, envelope.scope)
        self._values = values

    @property
    def resource_attributes(self) -> Attributes:
        """See `Envelope`."""
        self._values.looked_elsewhere = True
        return super().resource_attributes
