"""A server of the APIs of OpenAI and Anthropic, whose model follows a script."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

ANSWER = "Tokyo has 25.0 degrees and 60 percent humidity, Kyoto 23.5; tomorrow it is sunny in Tokyo."
Turn = Sequence[tuple[str, dict[str, Any]]]
SCRIPT: Sequence[Turn] = (
    [("get_temperature", {"city": "Tokyo"})],
    [("get_temperature", {"city": "Kyoto"}), ("get_humidity", {"city": "Tokyo"})],
    [("get_forecast", {"city": "Tokyo", "days": 2})],
)
"""What is requested in each turn; the tool of the last raises, and the answer does not admit it."""


def _turn(body: dict[str, Any]) -> int:
    """How many answers the history has, each with the calls of one turn."""
    return sum(message["role"] == "assistant" for message in body["messages"])


def _requested(turn: int) -> list[tuple[str, str, dict[str, Any]]]:
    """The calls of a turn with their ids; none where it is the answer's."""
    calls = SCRIPT[turn] if turn < len(SCRIPT) else ()
    return [(f"call_{turn}_{place}", name, arguments) for place, (name, arguments) in enumerate(calls)]


async def _chat_completions(request: web.Request) -> web.Response:
    turn = _turn(await request.json())
    calls = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for call_id, name, arguments in _requested(turn)
    ]
    message = {"role": "assistant", "content": None if calls else ANSWER}
    return web.json_response(
        {
            "id": f"chatcmpl-{turn}",
            "object": "chat.completion",
            "created": 1,
            "model": "scripted",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls" if calls else "stop",
                    "message": {**message, "tool_calls": calls} if calls else message,
                }
            ],
            "usage": {"prompt_tokens": 120, "completion_tokens": 24, "total_tokens": 144},
        }
    )


async def _messages(request: web.Request) -> web.Response:
    turn = _turn(await request.json())
    calls = [
        {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
        for call_id, name, arguments in _requested(turn)
    ]
    return web.json_response(
        {
            "id": f"msg_{turn}",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": calls or [{"type": "text", "text": ANSWER}],
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 120, "output_tokens": 24},
        }
    )


@asynccontextmanager
async def scripted_model() -> AsyncIterator[str]:
    """The URL of a server of its own."""
    app = web.Application(client_max_size=1 << 24)
    app.add_routes([web.post("/v1/chat/completions", _chat_completions), web.post("/v1/messages", _messages)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        assert runner.addresses
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
