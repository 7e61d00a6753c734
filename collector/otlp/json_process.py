"""OTLP/JSON of many MiB, converted in a separate process.

Parsing it and freeing the result are single steps that no other thread can interrupt: each would block the
event loop for up to a second.
"""

import sys
from typing import Literal

from collector.errors import MalformedRequest, Overloaded
from collector.otlp.json_codec import json_to_request, logs_json_to_request

_READERS = {"traces": json_to_request, "logs": logs_json_to_request}
_CONVERTED, _REFUSED = b"+", b"-"
"""The first byte of an answer: the request follows, or why it is invalid."""


async def json_to_request_in_process(body: bytes, signal: Literal["traces", "logs"] = "traces") -> bytes:
    """As `json_to_request` or `logs_json_to_request`; starting the process takes some tenths of a second.

    The process gets an empty environment and ends with its answer, or when this is cancelled.

    Raises:
        MalformedRequest: as there.
        Overloaded: the process could not be started, or ended without an answer.
    """
    import asyncio  # the process itself, and the one that inspects a journal, do without

    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-X", "utf8", "-m", __name__, signal),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={},
            cwd="/",
            start_new_session=True,  # signals from a terminal to the service are not for it
        )
    except OSError as error:
        raise Overloaded(
            f"The process to read the request could not be started: {error.strerror}."
        ) from error
    try:
        answer, _ = await process.communicate(body)
    finally:
        if process.returncode is None:
            process.kill()
            await asyncio.shield(process.wait())
    kind, content = answer[:1], answer[1:]
    if kind == _REFUSED:
        raise MalformedRequest(content.decode())
    if kind != _CONVERTED or process.returncode:
        raise Overloaded("The process that read the request ended before it was done.")
    return content


def main(signal: str) -> None:
    """Convert standard input, a request of that signal."""
    try:
        kind, content = _CONVERTED, _READERS[signal](sys.stdin.buffer.read())
    except MalformedRequest as error:
        kind, content = _REFUSED, str(error).encode()
    sys.stdout.buffer.write(kind + content)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1])
