"""What the service and its worker processes say to each other: JSON texts, each behind its length.

Nothing is pickled, so that a worker can hand the service text and nothing else. This module is loaded in
every worker before the evaluators are; it needs the standard library alone.
"""

import struct
from typing import BinaryIO

LENGTH = struct.Struct(">I")
"""How the length of a message stands before it."""
MAX_REPLY_BYTES = 1 << 20
"""A longer answer of a worker is not read."""


class ChannelClosed(Exception):
    """The other side is gone, or went in the middle of a message."""


def frame(message: bytes) -> bytes:
    """`message` as it goes over the pipe."""
    return LENGTH.pack(len(message)) + message


def read_frame(source: BinaryIO) -> bytes:
    """The next message, waiting for it.

    Raises:
        ChannelClosed: there is none to come.
    """
    (length,) = LENGTH.unpack(_read_exactly(source, LENGTH.size))
    return _read_exactly(source, length)


def _read_exactly(source: BinaryIO, count: int) -> bytes:
    content = source.read(count)
    if len(content) < count:
        raise ChannelClosed
    return content
