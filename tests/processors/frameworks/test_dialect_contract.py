"""What every dialect promises, those that are still to be written included."""

import ast
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import processors
from processors.carriers import discover_dialects
from processors.frameworks.tame import TABLE
from processors.model import JsonValue
from processors.shapes import Dialect, SpanRole
from processors.spans import Span
from tests.support.agent_spans import envelope, span

PROCESSORS = Path(processors.__path__[0])
DIALECTS = pytest.mark.parametrize("dialect", discover_dialects(), ids=lambda dialect: str(dialect.name))

TEXTS = st.sampled_from(
    [
        "",
        "null",
        "{}",
        "[]",
        "[[]]",
        "{",
        '"',
        "0",
        "tool",
        "get",
        '{"args": 1, "kwargs": []}',
        '{"kwargs": {}}',
        '{"messages": [null, {"role": 1, "content": {}}]}',
        '[{"role": "user", "content": [1, null]}]',
        '{"choices": [{"message": null}, 3]}',
        '{"generations": [[[]]]}',
        '{"toolCalls": [1, {"payload": 2}]}',
        '{"response": {"responseParts": [1, {"functionResponse": 2}]}, "status": "error"}',
        "__REDACTED__",
        '{"input": "{"}',
        '{"output": {"kwargs": 1}}',
        "{'a': (1, 2)}",
        "\ud7ff",
        "a\x00b",
    ]
)
VALUES: st.SearchStrategy[JsonValue] = st.one_of(
    TEXTS,
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(allow_nan=False),
    st.lists(TEXTS, max_size=2),
    st.dictionaries(st.sampled_from(["args", "kwargs", "messages", "items"]), TEXTS, max_size=2),
)


def modules_of(family: str) -> list[Path]:
    rooms = (PROCESSORS / "carriers", PROCESSORS / "frameworks")
    return [module for room in rooms if (module := room / f"{family}.py").exists()]


@cache
def words_of(family: str) -> list[str]:
    """All texts that a dialect's module knows: attribute keys, their values, names of spans and events."""
    return sorted(
        {
            node.value
            for module in modules_of(family)
            for node in ast.walk(ast.parse(module.read_text()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and 0 < len(node.value) < 60
        }
    )


def family_of(dialect: Dialect) -> str:
    return "tame" if dialect in TABLE else dialect.name


@DIALECTS
def test_it_is_called_as_its_file_or_its_row(dialect: Dialect) -> None:
    assert len(modules_of(family_of(dialect))) == 1


@DIALECTS
def test_it_names_the_keys_or_scopes_that_it_applies_to(dialect: Dialect) -> None:
    assert dialect.keys or dialect.scopes
    assert len(dialect.keys) == len(set(dialect.keys))


@settings(max_examples=200, deadline=None)
@given(dialect=st.sampled_from(discover_dialects()), data=st.data())
def test_none_raises_for_what_a_span_can_hold(dialect: Dialect, data: st.DataObject) -> None:
    check_reading(dialect, data)


@pytest.mark.slow
@DIALECTS
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_it_never_raises_for_what_a_span_can_hold(dialect: Dialect, data: st.DataObject) -> None:
    check_reading(dialect, data)


def check_reading(dialect: Dialect, data: st.DataObject) -> None:
    """Whether the dialect reads some span, whatever is in it, to values of the right types."""
    words = words_of(family_of(dialect))
    known = st.sampled_from(words)
    values = st.one_of(VALUES, known)
    attributes = data.draw(
        st.dictionaries(st.one_of(st.sampled_from(list(dialect.keys) or words), known), values, max_size=8)
    )
    events = data.draw(st.lists(st.tuples(known, st.dictionaries(known, values, max_size=3)), max_size=2))
    name = data.draw(st.one_of(known, TEXTS))

    view = Span(
        span(1, None, name, attributes, events=events)[1], envelope(scope=data.draw(st.one_of(TEXTS, known)))
    )

    role = dialect.role(view)
    assert role is None or isinstance(role, SpanRole)
    if role is not None:
        called, ran, conversation = dialect.tool(view), dialect.agent(view), dialect.conversation(view)
        assert all(isinstance(text, str) for text in (called.name, called.inferred_name, called.call_id))
        assert all(isinstance(text, str) for text in (ran.name, ran.inferred_name, ran.id, ran.session))
        assert all(message.role for message in (*conversation.input, *conversation.output))
        assert all(isinstance(tool, str) for tool in conversation.tools())
