"""One agent run as an instrumented process would report it: 13 finished spans of the OpenTelemetry SDK.

A root `invoke_agent`, four turns of `chat` and `execute_tool`, and below every tool one call to a backend.
The content depends on the seed alone, so two builds of one trace differ in their times only.
"""

import json
from collections.abc import Mapping
from random import Random

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from processors.model import JsonObject

SPANS_PER_TRACE = 13
AGENT_NAME = "order_support_agent"
MODEL = "sonata-3-large"

CORRECT_WAREHOUSE = "Leipzig"
_WRONG_WAREHOUSE = "Trieste"
_TOOLS = ("find_order", "get_customer", "check_stock", "quote_delivery")
STOCK_RESULT: JsonObject = {
    "sku": "KB-87-ISO-DE",
    "available": 42,
    "reserved": 7,
    "reorder_level": 25,
    "next_delivery": {"supplier": "Northwind Components", "units": 120, "status": "in transit"},
    "locations": [{"aisle": "C", "shelf": 14, "units": 30}, {"aisle": "F", "shelf": 3, "units": 12}],
    "note": "Counted at the start of the week; two units are damaged.",
}
"""What `check_stock` answers, always."""

_AGENT_SCOPE = InstrumentationScope(
    "opentelemetry.instrumentation.agent_runtime", "2.4.1", "https://opentelemetry.io/schemas/1.41.0"
)
_BACKEND_SCOPE = InstrumentationScope("shop.backend_clients", "1.9.0")

_REMEMBERED_TURNS = 2
_PROSE = (
    "the order was placed by a returning customer and has not left our warehouse because one item is "
    "still missing please check whether it can be replaced without delay before you promise any date "
    "delivery address payment refund carrier keyboard invoice window weekend signature neighbour"
)
_WORDS = _PROSE.split()


def agent_trace(
    seed: str,
    trace_id: bytes,
    start_unix_nano: int,
    resource: Resource,
    *,
    variant: int,
    agent: str = AGENT_NAME,
) -> list[ReadableSpan]:
    """The spans of one run in the order of their ends, as a batch span processor queues them.

    Of every eight variants one checks the wrong warehouse and one ends in a tool error; the others do
    everything right.
    """
    return _Run(seed, trace_id, start_unix_nano, resource, agent).spans(variant % 8)


class _Run:
    def __init__(
        self, seed: str, trace_id: bytes, start_unix_nano: int, resource: Resource, agent: str
    ) -> None:
        self._agent = agent
        self._random = Random(seed)
        self._trace_id = int.from_bytes(trace_id, "big")
        self._resource = resource
        self._start = self._now = start_unix_nano
        self._finished: list[ReadableSpan] = []

    def spans(self, variant: int) -> list[ReadableSpan]:
        root = self._context()
        prompt = _message("user", {"type": "text", "content": self._prose(720)})
        instructions = json.dumps([{"type": "text", "content": self._prose(700)}])
        history: list[list[JsonObject]] = []
        for turn, tool in enumerate(_TOOLS):
            failed = variant == 6 and tool == "quote_delivery"
            warehouse = _WRONG_WAREHOUSE if variant == 3 and tool == "check_stock" else CORRECT_WAREHOUSE
            call_id = f"call_{self._random.getrandbits(96):024x}"
            arguments = self._arguments(tool, warehouse)
            request = _message(
                "assistant", {"type": "tool_call", "id": call_id, "name": tool, "arguments": arguments}
            )
            seen = [message for exchange in history[-_REMEMBERED_TURNS:] for message in exchange]
            self._chat(root, turn, instructions, [prompt, *seen], request)
            result = None if failed else self._result(tool)
            self._execute_tool(root, tool, call_id, arguments, result)
            answer: JsonObject = {"type": "tool_call_response", "id": call_id, "response": result}
            history.append([request, _message("tool", answer)])
        self._now += self._milliseconds(5, 20)
        self._finish(
            f"invoke_agent {self._agent}",
            root,
            None,
            self._start,
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.provider.name": "sonata",
                "gen_ai.agent.name": self._agent,
                "gen_ai.agent.version": "7",
                "gen_ai.conversation.id": f"conv_{self._random.getrandbits(64):016x}",
                "gen_ai.input.messages": json.dumps([prompt]),
                "gen_ai.output.messages": json.dumps(
                    [_message("assistant", {"type": "text", "content": self._prose(240)})]
                ),
            },
        )
        return self._finished

    def _chat(
        self,
        parent: SpanContext,
        turn: int,
        instructions: str,
        messages: list[JsonObject],
        answer: JsonObject,
    ) -> None:
        start = self._now
        self._now += self._milliseconds(150, 700)
        self._finish(
            f"chat {MODEL}",
            self._context(),
            parent,
            start,
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "sonata",
                "gen_ai.request.model": MODEL,
                "gen_ai.request.temperature": 0.2,
                "gen_ai.request.max_tokens": 2048,
                "gen_ai.response.model": f"{MODEL}-2026-05",
                "gen_ai.response.id": f"resp_{self._random.getrandbits(96):024x}",
                "gen_ai.response.finish_reasons": ("tool_calls",),
                "gen_ai.usage.input_tokens": 640 + 190 * turn,
                "gen_ai.usage.output_tokens": self._random.randrange(60, 120),
                "server.address": "api.sonata.example",
                "server.port": 443,
                "gen_ai.system_instructions": instructions,
                "gen_ai.input.messages": json.dumps(messages),
                "gen_ai.output.messages": json.dumps([answer]),
            },
            kind=SpanKind.CLIENT,
        )

    def _execute_tool(
        self,
        parent: SpanContext,
        tool: str,
        call_id: str,
        arguments: JsonObject,
        result: JsonObject | None,
    ) -> None:
        context = self._context()
        start = self._now
        self._now += self._milliseconds(1, 4)
        self._backend_call(context, tool, failed=result is None)
        self._now += self._milliseconds(1, 4)
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call_id,
            "gen_ai.tool.description": f"The {tool.replace('_', ' ')} function of the shop.",
            "gen_ai.tool.call.arguments": json.dumps(arguments),
        }
        status = Status(StatusCode.UNSET)
        if result is None:
            attributes["error.type"] = "CarrierUnavailable"
            status = Status(StatusCode.ERROR, "The carrier's quotation service did not answer.")
        else:
            attributes["gen_ai.tool.call.result"] = json.dumps(result)
        self._finish(f"execute_tool {tool}", context, parent, start, attributes, status=status)

    def _backend_call(self, parent: SpanContext, tool: str, *, failed: bool) -> None:
        start = self._now
        self._now += self._milliseconds(5, 90)
        attributes: dict[str, str | int]
        if tool in ("find_order", "get_customer"):
            name = f"SELECT shop.{tool}"
            attributes = {
                "db.system.name": "postgresql",
                "db.namespace": "shop",
                "db.operation.name": "SELECT",
                "db.query.text": f"SELECT * FROM {tool}_view WHERE id = $1 AND deleted_at IS NULL LIMIT 1",
                "server.address": "db.shop.example",
                "server.port": 5432,
            }
        else:
            name = "POST"
            attributes = {
                "http.request.method": "POST",
                "url.full": f"https://backend.shop.example/api/v2/{tool}?trace=on&region=eu-central",
                "http.response.status_code": 503 if failed else 200,
                "network.protocol.version": "1.1",
                "server.address": "backend.shop.example",
                "server.port": 443,
            }
        status = Status(StatusCode.ERROR) if failed else Status(StatusCode.UNSET)
        self._finish(
            name,
            self._context(),
            parent,
            start,
            attributes,
            kind=SpanKind.CLIENT,
            status=status,
            scope=_BACKEND_SCOPE,
        )

    def _arguments(self, tool: str, warehouse: str) -> JsonObject:
        return {
            "order_id": f"A-{self._random.randrange(10**6):06d}",
            "customer_id": f"C-{self._random.randrange(10**6):06d}",
            "warehouse": warehouse,
            "items": [{"sku": "KB-87-ISO-DE", "quantity": self._random.randrange(1, 5)}],
            "options": {"tool": tool, "currency": "EUR", "include_history": False},
            "reason": self._prose(90),
        }

    def _result(self, tool: str) -> JsonObject:
        if tool == "check_stock":
            return STOCK_RESULT
        return {
            "status": "ok",
            "reference": f"{tool}-{self._random.getrandbits(64):016x}",
            "total": self._random.randrange(1000, 90000) / 100,
            "lines": [{"sku": "KB-87-ISO-DE", "quantity": 1, "price": 129.0}],
            "summary": self._prose(150),
        }

    def _finish(
        self,
        name: str,
        context: SpanContext,
        parent: SpanContext | None,
        start: int,
        attributes: Mapping[str, str | int | float | tuple[str, ...]],
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        status: Status | None = None,
        scope: InstrumentationScope = _AGENT_SCOPE,
    ) -> None:
        self._finished.append(
            ReadableSpan(
                name=name,
                context=context,
                parent=parent,
                resource=self._resource,
                attributes=dict(attributes),
                kind=kind,
                status=status or Status(StatusCode.UNSET),
                start_time=start,
                end_time=self._now,
                instrumentation_scope=scope,
            )
        )

    def _context(self) -> SpanContext:
        span_id = self._random.randrange(1, 1 << 64)
        return SpanContext(self._trace_id, span_id, is_remote=False, trace_flags=TraceFlags(1))

    def _milliseconds(self, low: int, high: int) -> int:
        return self._random.randrange(low * 1_000_000, high * 1_000_000)

    def _prose(self, length: int) -> str:
        words: list[str] = []
        while length > 0:
            words.append(self._random.choice(_WORDS))
            length -= len(words[-1]) + 1
        return " ".join(words).capitalize() + "."


def _message(role: str, part: JsonObject) -> JsonObject:
    return {"role": role, "parts": [part]}
