"""A model for coding agents: it requests shell commands one after another, then answers.

It serves what Codex (OpenAI's Responses), Claude Code (Anthropic's Messages) and Gemini CLI (Gemini's
generateContent) call, streamed.
"""

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

ANSWER = "The forecast is sunny."
_USAGE = {"input_tokens": 120, "output_tokens": 24}


class _Model:
    def __init__(self, commands: Sequence[str]) -> None:
        self._commands = commands

    async def responses(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        done = sum(item.get("type") == "function_call_output" for item in body["input"])
        item: dict[str, Any] = {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": ANSWER}],
        }
        if done < len(self._commands):
            arguments = json.dumps({"cmd": self._commands[done]})
            item = {
                "type": "function_call",
                "call_id": f"call_{done}",
                "name": "exec_command",
                "arguments": arguments,
            }
        response = {"id": f"response_{done}"}
        return await _streamed(
            request,
            [
                ("response.created", {"response": response}),
                ("response.output_item.done", {"output_index": 0, "item": item}),
                ("response.completed", {"response": {**response, "usage": {**_USAGE, "total_tokens": 144}}}),
            ],
        )

    async def messages(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        parts = [part for message in body["messages"] for part in message["content"]]
        done = sum(isinstance(part, dict) and part.get("type") == "tool_result" for part in parts)
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta: dict[str, Any] = {"type": "text_delta", "text": ANSWER}
        reason = "end_turn"
        if done < len(self._commands):
            block = {"type": "tool_use", "id": f"toolu_{done}", "name": "Bash", "input": {}}
            arguments = {"command": self._commands[done], "description": "what was scripted"}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
            reason = "tool_use"
        message = {"id": f"message_{done}", "type": "message", "role": "assistant", "content": []}
        started = {"model": body["model"], "stop_reason": None, "stop_sequence": None, "usage": _USAGE}
        return await _streamed(
            request,
            [
                ("message_start", {"message": {**message, **started}}),
                ("content_block_start", {"index": 0, "content_block": block}),
                ("content_block_delta", {"index": 0, "delta": delta}),
                ("content_block_stop", {"index": 0}),
                ("message_delta", {"delta": {"stop_reason": reason}, "usage": {"output_tokens": 24}}),
                ("message_stop", {}),
            ],
        )

    async def contents(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        parts = [part for content in body["contents"] for part in content["parts"]]
        done = sum("functionResponse" in part for part in parts)
        part: dict[str, Any] = {"text": ANSWER}
        if done < len(self._commands):
            arguments = {"command": self._commands[done]}
            part = {"functionCall": {"name": "run_shell_command", "args": arguments}}
        usage = {"promptTokenCount": 120, "candidatesTokenCount": 24, "totalTokenCount": 144}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        answer = {"candidates": [candidate], "usageMetadata": usage, "responseId": f"response_{done}"}
        return await _streamed(request, [("", answer)])


async def _streamed(request: web.Request, events: Iterable[tuple[str, Any]]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for name, data in events:
        head, typed = (f"event: {name}\n", {"type": name, **data}) if name else ("", data)
        await response.write(f"{head}data: {json.dumps(typed)}\n\n".encode())
    await response.write_eof()
    return response


async def _nothing(_: web.Request) -> web.Response:
    return web.json_response({"data": []})


@asynccontextmanager
async def command_model(commands: Sequence[str]) -> AsyncIterator[str]:
    """The URL of a server of its own."""
    model = _Model(commands)
    app = web.Application(client_max_size=1 << 26)
    app.add_routes(
        [
            web.post("/v1/responses", model.responses),
            web.post("/v1/messages", model.messages),
            web.post("/{version}/models/{model}", model.contents),
            web.route("*", "/{path:.*}", _nothing),
        ]
    )
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
