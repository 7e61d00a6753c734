"""Reading the text files that people write: UTF-8, with or without a byte order mark."""

from dataclasses import dataclass
from pathlib import Path

from processors.documents import InvalidInput, Problem


def read_text_file(path: Path) -> str:
    """The text in the file; raises InvalidInput where it cannot be read or is not UTF-8."""
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InvalidInput([Problem(str(path), 0, "", f"cannot be read: {reason}")]) from None
    return decoded_text(content, str(path))


def decoded_text(content: bytes, name: str) -> str:
    """The text of a file called `name`; raises InvalidInput, with the line, where it is not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInput([Problem(name, line, "", "not valid UTF-8")]) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFile:
    """A criteria file as it was last good.

    `pattern` is the entry of `processors.evaluation.criteria` that matched it; `kept_unix_nano` is when it
    was stored.
    """

    path: str
    pattern: str
    content: bytes
    kept_unix_nano: int
