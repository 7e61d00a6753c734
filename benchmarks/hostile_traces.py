"""Traces that nobody sends by mistake: every kind drives one step of reconstruction or grading to its worst.

A kind builds a trace of any number of spans, always the same for that number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from benchmarks.hostile_spans import (
    ENVELOPES,
    SpanAttribute,
    agent_span,
    call_request,
    call_result,
    message,
    model_span,
    plain_span,
    tool_span,
)
from processors.model import JsonValue
from processors.spans import RawSpan

_MEBIBYTE = 1 << 20
_RING = 1_000
_GIVEN_CALLS = 2_000
_HISTORY_MESSAGES = 1_500


@dataclass(frozen=True, slots=True)
class HostileKind:
    """One kind of trace: its name, what is hostile about it, and what builds it."""

    name: str
    what: str
    build: Callable[[int], list[RawSpan]]


def _cycles(count: int) -> list[RawSpan]:
    """Rings of 1,000 spans each, tools and agents in turn."""
    return [
        (tool_span if number % 2 else agent_span)(
            number,
            number + 1 if number % _RING and number < count else number - (number - 1) % _RING,
            f"n{number % 7}",
            (number, number + 5),
        )
        for number in range(1, count + 1)
    ]


def _own_parents(count: int) -> list[RawSpan]:
    return [
        tool_span(number, number, f"t{number % 7}", (number, number + 5)) for number in range(1, count + 1)
    ]


def _missing_parents(count: int) -> list[RawSpan]:
    """Every parent is lost, and one span in ten is an agent's run that is open while the others come."""
    return [
        agent_span(number, 2 * count + number, f"a{number}", (number, 2 * count - number))
        if number % 10 == 0
        else tool_span(number, 2 * count + number, f"t{number % 7}", (number, 3 * count))
        for number in range(1, count + 1)
    ]


def _nested_agents(count: int) -> list[RawSpan]:
    return [
        agent_span(number, number - 1, f"a{number}", (number, 2 * count - number))
        for number in range(1, count + 1)
    ]


def _nested_calls(count: int) -> list[RawSpan]:
    """Calls within calls, all reports of the outermost one."""
    return [
        agent_span(1, 0, "a", (0, 3 * count)),
        *(tool_span(number, number - 1, "t", (number, 2 * count - number)) for number in range(2, count + 1)),
    ]


def _large_arguments(count: int) -> list[RawSpan]:
    """One call in a thousand has arguments of 1 MiB, and one as much as is still parsed."""
    largest = json.dumps({"text": "x" * _MEBIBYTE})
    parsed = json.dumps({"values": list(range(40_000))})
    spans = [agent_span(1, 0, "a", (0, 10 * count))]
    for number in range(2, count + 1):
        rest = number % 1000
        arguments = largest if rest == 500 else parsed if rest == 0 else '{"city": "Oslo"}'
        spans.append(tool_span(number, 1, f"t{number % 7}", (number, number + 5), arguments=arguments))
    return spans


def _not_text(count: int) -> list[RawSpan]:
    """Bytes that are no UTF-8, and lone surrogates in JSON, wherever a text belongs."""
    lone = '{"city": "\\ud800", "\\udfff": ["\\ud800\\ud800"]}'
    return [
        agent_span(1, 0, "a", (0, 10 * count)),
        *(
            tool_span(
                number,
                1,
                b"\xff\xfe\x80",
                (number, number + 5),
                call_id=b"\xc3\x28",
                arguments=lone if number % 2 else b"\x80" * 40,
                result=lone,
            )
            for number in range(2, count + 1)
        ),
    ]


def _numbers_as_names(count: int) -> list[RawSpan]:
    return [
        agent_span(1, 0, 3.5, (0, 10 * count)),
        *(
            tool_span(number, 1, number % 9, (number, number + 5), call_id=number)
            for number in range(2, count + 1)
        ),
    ]


def _asked_twice(count: int) -> list[RawSpan]:
    """A turn and its call in turn; every answer asks twice for its call and for that of the turn before."""
    spans = [agent_span(1, 0, "a", (0, 20 * count))]
    for number in range(2, count, 2):
        at = 10 * number
        asked = [
            message("assistant", call_request(f"t{turn % 50}", f"c{turn}")) for turn in (number - 2, number)
        ]
        answered = [message("tool", call_result(f"c{number - 2}", {"ok": True}))]
        spans.append(
            model_span(
                number, 1, (at, at + 5), output=json.dumps(asked * 2), given=json.dumps(asked + answered)
            )
        )
        spans.append(
            tool_span(number + 1, 1, f"t{number % 50}", (at + 6, at + 9), call_id=f"c{number}", result="")
        )
    return _filled(spans, count)


def _one_wide_turn(count: int) -> list[RawSpan]:
    """All spans but two are calls, each of a tool of its own, that one answer of the model asked for."""
    asked = [call_request(f"t{number}", f"c{number}") for number in range(min(count, _GIVEN_CALLS))]
    return [
        agent_span(1, 0, "a", (0, 10 * count)),
        model_span(2, 1, (0, 1), output=json.dumps([{"role": "assistant", "parts": asked}])),
        *(
            tool_span(number, 1, f"t{number}", (2 + number % 3, 10 * count), call_id=f"c{number}")
            for number in range(3, count + 1)
        ),
    ]


def _many_runs(count: int) -> list[RawSpan]:
    spans = []
    for number in range(1, count, 2):
        spans.append(
            agent_span(number, 0, f"a{number % 100}", (number, number + 9), answer="The city is Oslo.")
        )
        spans.append(tool_span(number + 1, number, f"t{number % 7}", (number + 1, number + 5)))
    return _filled(spans, count)


def _invented_tools(count: int) -> list[RawSpan]:
    """Half of the spans are calls, each of a tool of its own; the others ask for tools that nobody called."""
    spans = [agent_span(1, 0, "a", (0, 20 * count))]
    for number in range(2, count, 2):
        at = 10 * number
        asked = [message("assistant", call_request(f"server__no{number}", f"n{number}"))]
        spans.append(model_span(number, 1, (at, at + 5), output=json.dumps(asked), tools='[{"name": "t"}]'))
        spans.append(tool_span(number + 1, 1, f"server.t{number}", (at + 6, at + 9)))
    return _filled(spans, count)


def _unnamed_layers(count: int) -> list[RawSpan]:
    """Half of the spans report one unnamed run, one in the other; the others are named runs below them."""
    layers = count // 2
    return [
        *(agent_span(number, number - 1, "", (number, 3 * count)) for number in range(1, layers + 1)),
        *(
            agent_span(number, layers, f"a{number}", (number, 2 * count))
            for number in range(layers + 1, count + 1)
        ),
    ]


def _echoes(count: int) -> list[RawSpan]:
    """Below one span runs of one agent, each with a call, and as many bare spans of the same agent."""
    runs = count // 3
    spans = [plain_span(1, 0, (0, 20 * count))]
    for number in range(2, 2 + runs):
        spans.append(agent_span(number, 1, "a", (number, 10 * count + number)))
        spans.append(agent_span(number + count, 1, "a", (number - 1, 10 * count - number)))
        spans.append(tool_span(number + 2 * count, number, "t", (number, number + 1)))
    return _filled(spans, count)


def _turns_that_end_first(count: int) -> list[RawSpan]:
    """Model turns that end before they begin, and calls between the two."""
    half = count // 2
    return [
        agent_span(1, 0, "a", (0, 10 * count)),
        *(model_span(number, 1, (5 * count + number, number)) for number in range(2, half)),
        *(
            tool_span(number, 1, f"t{number % 7}", (2 * count, 2 * count + 1))
            for number in range(half, count + 1)
        ),
    ]


def _calls_of_one_node(count: int) -> list[RawSpan]:
    """Calls without arguments below one node of a graph that lists what it was given to execute."""
    given = [
        {"type": "tool_call", "name": f"t{number}", "id": f"c{number}", "args": {"n": number}}
        for number in range(min(count, _GIVEN_CALLS))
    ]
    node = {"openinference.span.kind": "CHAIN", "input.value": json.dumps(given)}
    return [
        agent_span(1, 0, "a", (0, 10 * count)),
        plain_span(2, 1, (0, 9 * count), node),
        *(
            tool_span(number, 2, f"t{number % _GIVEN_CALLS}", (number, number + 5), arguments=None)
            for number in range(3, count + 1)
        ),
    ]


def _history_without_turns(count: int) -> list[RawSpan]:
    """A run that tells its whole history and has no model turns of its own."""
    history = [
        message("assistant", call_request("t", f"c{number}"))
        for number in range(min(count, _HISTORY_MESSAGES))
    ]
    return [
        agent_span(1, 0, "a", (0, 10 * count), given=json.dumps(history)),
        *(
            tool_span(number, 1, "t", (number, number + 5), call_id=f"c{number}", result=None)
            for number in range(2, count + 1)
        ),
    ]


def _two_instrumentations(count: int) -> list[RawSpan]:
    """Calls of one tool at one time with the same arguments, by turns from two instrumentations."""
    return [
        agent_span(1, 0, "a", (0, 10 * count)),
        *(
            tool_span(number, 1, "t", (5, 6), of=ENVELOPES[number % 2], call_id=f"c{number // 4}")
            for number in range(2, count + 1)
        ),
    ]


def _turns_of_two_scopes(count: int) -> list[RawSpan]:
    """Model turns from two instrumentations, each within the time of all before it, that all differ."""
    return [
        agent_span(1, 0, "a", (0, 30 * count)),
        *(
            model_span(
                number,
                1,
                (number, 20 * count - number),
                output=json.dumps([message("assistant", {"type": "text", "content": f"answer {number}."})]),
                of=ENVELOPES[number % 2],
            )
            for number in range(2, count + 1)
        ),
    ]


def _resumed_runs(count: int) -> list[RawSpan]:
    """One hosted agent that is called again and again with the result of what it asked for."""
    return [
        plain_span(1, 0, (0, 20 * count)),
        *(
            agent_span(
                number,
                1,
                "a",
                (10 * number, 10 * number + 5),
                given=json.dumps([message("tool", call_result(f"c{number - 1}", 1))]),
                made=json.dumps([message("assistant", call_request("t", f"c{number}"))]),
            )
            for number in range(2, count + 1)
        ),
    ]


def _endless_retries(count: int) -> list[RawSpan]:
    failed = '{"error": "timeout"}'
    return [
        agent_span(1, 0, "a", (0, 10 * count)),
        *(
            tool_span(number, 1, "t", (2 * number, 2 * number + 1), result=failed, error="Timeout")
            for number in range(2, count + 1)
        ),
    ]


def _crumbled_messages(count: int) -> list[RawSpan]:
    """Model turns whose messages are a thousand crumbs of text each, one turn for every fifty spans."""
    crumbs: list[JsonValue] = [{"type": "text", "content": "crumb"}] * 1_000
    text = json.dumps([{"role": "assistant", "parts": crumbs}])
    spans = [agent_span(1, 0, "a", (0, 20 * count), given=text)]
    for number in range(2, count + 1):
        at = 10 * number
        if number % 50 == 0:
            spans.append(model_span(number, 1, (at, at + 5), output=text, given=text))
        else:
            spans.append(tool_span(number, 1, f"t{number % 7}", (at, at + 5)))
    return spans


def _flattened_messages(count: int) -> list[RawSpan]:
    """Model turns with messages flattened to many attributes, whose keys go deep."""
    deep = "llm.output_messages.0.message." + "0." * 2_000
    flat: dict[str, SpanAttribute] = {"openinference.span.kind": "LLM", deep: "x"}
    for number in range(40):
        flat[f"llm.input_messages.{number}.message.role"] = "user"
        flat[f"llm.input_messages.{number}.message.content"] = "hello"
    spans = [agent_span(1, 0, "a", (0, 20 * count))]
    for number in range(2, count + 1):
        at = 10 * number
        if number % 20 == 0:
            spans.append(plain_span(number, 1, (at, at + 5), flat))
        else:
            spans.append(
                tool_span(number, 1, f"t{number % 7}", (at, at + 5), result=None, call_id=f"c{number}")
            )
    return spans


def _filled(spans: list[RawSpan], count: int) -> list[RawSpan]:
    """`spans` and as many spans of no kind as are missing."""
    return [*spans, *_fillers(10_000_000, count - len(spans))]


def _fillers(first: int, count: int) -> Iterator[RawSpan]:
    return (plain_span(number, 0, (0, 1)) for number in range(first, first + count))


HOSTILE_KINDS: Final = (
    HostileKind("cycles", "rings of 1,000 parents", _cycles),
    HostileKind("own-parents", "every span its own parent", _own_parents),
    HostileKind("missing-parents", "every parent lost, a tenth are open runs", _missing_parents),
    HostileKind("nested-agents", "each agent runs below the one before", _nested_agents),
    HostileKind("nested-calls", "each call reports the one before", _nested_calls),
    HostileKind("large-arguments", "1 MiB of arguments in one of 1,000 calls", _large_arguments),
    HostileKind("not-text", "bytes and lone surrogates for texts", _not_text),
    HostileKind("numbers-as-names", "numbers where names and ids belong", _numbers_as_names),
    HostileKind("asked-twice", "every call is requested twice a turn, in two turns", _asked_twice),
    HostileKind("one-wide-turn", "all calls in one turn of one agent", _one_wide_turn),
    HostileKind("many-runs", "runs with one call each", _many_runs),
    HostileKind("invented-tools", "as many tools asked for in vain as called", _invented_tools),
    HostileKind("unnamed-layers", "unnamed reports of a run above named runs", _unnamed_layers),
    HostileKind("echoes", "bare spans beside runs of one agent", _echoes),
    HostileKind("turns-that-end-first", "turns that end before they begin", _turns_that_end_first),
    HostileKind("calls-of-one-node", "a node that lists 2,000 calls above all calls", _calls_of_one_node),
    HostileKind("history-without-turns", "1,500 messages of history and no turns", _history_without_turns),
    HostileKind("two-instrumentations", "equal calls from two instrumentations", _two_instrumentations),
    HostileKind("turns-of-two-scopes", "overlapping turns from two instrumentations", _turns_of_two_scopes),
    HostileKind("resumed-runs", "one hosted run with as many turns as spans", _resumed_runs),
    HostileKind("endless-retries", "one tool fails again and again", _endless_retries),
    HostileKind("crumbled-messages", "messages in 1,000 parts each", _crumbled_messages),
    HostileKind("flattened-messages", "80 attributes a message list, keys 2,000 deep", _flattened_messages),
)
"""All kinds; each is to cost the same per span however many spans there are."""
