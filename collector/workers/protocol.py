"""Messages between the service and its worker processes, each after its length, over two pipes.

This module is loaded in every worker before custom code is, and imports only the standard library. Workers of
custom evaluators send JSON texts and nothing else.
"""

import os
import select
import struct
import threading
from typing import BinaryIO, cast

LENGTH = struct.Struct(">I")
"""The length in front of a message."""
MAX_REPLY_BYTES = 1 << 20
"""Longer answers of a worker are not read."""


class ChannelClosed(Exception):
    """The other side closed the pipe, perhaps in the middle of a message."""


def frame(message: bytes) -> bytes:
    """`message` as it goes over the pipe."""
    return LENGTH.pack(len(message)) + message


def read_frame(source: BinaryIO) -> bytes:
    """Wait for the next message; raises `ChannelClosed` if there is none."""
    (length,) = LENGTH.unpack(_read_exactly(source, LENGTH.size))
    return _read_exactly(source, length)


def open_channel() -> tuple[BinaryIO, BinaryIO]:
    """The pipes of this worker to the service; standard input and output lead nowhere from then on."""
    questions = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return cast("BinaryIO", questions), cast("BinaryIO", answers)


def end_with_the_service(questions: BinaryIO) -> None:
    """From now on end the process once the service has closed the pipe, whatever it is doing."""
    threading.Thread(target=_wait_for_the_end, args=(questions.fileno(),), daemon=True).start()


def _wait_for_the_end(pipe: int) -> None:
    poller = select.poll()
    poller.register(pipe, 0)  # that the other end was closed is always reported
    poller.poll()
    os._exit(0)


def _read_exactly(source: BinaryIO, count: int) -> bytes:
    content = source.read(count)
    if len(content) < count:
        raise ChannelClosed
    return content
