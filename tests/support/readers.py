"""Tests with each of the two readers: the Python code, and the one in Rust where it is installed."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks.readers import python_alone
from processors.spans import NATIVE, NATIVE_REASON

READERS = ("python", "native")


@contextmanager
def reader(name: str) -> Iterator[None]:
    """Read with that one of `READERS`; skips the test where it is not in use."""
    if name == "python":
        with python_alone():
            yield
        return
    if NATIVE is None:
        pytest.skip(NATIVE_REASON)
    yield
