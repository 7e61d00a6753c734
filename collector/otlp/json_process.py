"""OTLP/JSON of many MiB, converted by a process of its own.

To parse it, and to let go of what was parsed, each is one step that no other thread can interrupt: it would
stop the event loop for up to a second.
"""

import asyncio
import sys

from collector.errors import MalformedRequest, Overloaded
from collector.otlp.json_codec import json_to_request

_CONVERTED, _REFUSED = b"+", b"-"
"""The first byte of an answer says what follows: the request, or why it is none."""


async def json_to_request_apart(body: bytes) -> bytes:
    """As `json_to_request`; starting the process takes some tenths of a second.

    The process gets an empty environment and ends with its answer, or when nobody waits for that any more.

    Raises:
        MalformedRequest: as there.
        Overloaded: the process could not be started, or did not live to answer.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-X", "utf8", "-m", __name__),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={},
            cwd="/",
            start_new_session=True,  # what a terminal sends to the service is not for it
        )
    except OSError as error:
        raise Overloaded(f"No process could be started to read the request: {error.strerror}.") from error
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


def main() -> None:
    """Convert what comes on standard input."""
    try:
        kind, content = _CONVERTED, json_to_request(sys.stdin.buffer.read())
    except MalformedRequest as error:
        kind, content = _REFUSED, str(error).encode()
    sys.stdout.buffer.write(kind + content)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
