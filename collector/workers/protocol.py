"""Messages between the service and its worker processes, each after its length, over two pipes.

This module is loaded in every worker before custom code is, and imports only the standard library. Workers of
custom evaluators send JSON texts and nothing else.
"""

import os
import select
import struct
import threading
from collections.abc import Callable
from typing import BinaryIO, cast

LENGTH = struct.Struct(">I")
"""The length in front of a message."""
MAX_REPLY_BYTES = 1 << 20
"""Longer answers of a worker are not read."""


Answer = Callable[[bytes], bytes | None]
"""Answers a message; None: it takes no answer."""


class _ChannelClosed(Exception):
    """The other side closed the pipe, perhaps in the middle of a message."""


def frame(message: bytes) -> bytes:
    """`message` as it goes over the pipe."""
    return LENGTH.pack(len(message)) + message


def serve(begin: Callable[[bytes], tuple[bytes, Answer]]) -> None:
    """Be a worker, until the service closes the pipe.

    `begin` takes the first message, and returns the answer to it and what answers all others.
    """
    questions, answers = _open_channel()
    try:
        reply, answer = begin(_read_frame(questions))
        _write(answers, reply)
        threading.Thread(target=_end_with_the_service, args=(questions.fileno(),), daemon=True).start()
        while True:
            following = answer(_read_frame(questions))
            if following is not None:
                _write(answers, following)
    except (_ChannelClosed, BrokenPipeError):
        os._exit(0)


def _open_channel() -> tuple[BinaryIO, BinaryIO]:
    """The pipes of this worker to the service; standard input and output lead nowhere from then on."""
    questions = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return cast("BinaryIO", questions), cast("BinaryIO", answers)


def _end_with_the_service(pipe: int) -> None:
    """End the process once the service has closed the pipe, whatever it is doing."""
    poller = select.poll()
    poller.register(pipe, 0)  # that the other end was closed is always reported
    poller.poll()
    os._exit(0)


def _read_frame(source: BinaryIO) -> bytes:
    (length,) = LENGTH.unpack(_read_exactly(source, LENGTH.size))
    return _read_exactly(source, length)


def _read_exactly(source: BinaryIO, count: int) -> bytes:
    content = source.read(count)
    if len(content) < count:
        raise _ChannelClosed
    return content


def _write(answers: BinaryIO, message: bytes) -> None:
    answers.write(frame(message))
    answers.flush()
