"""Tests with each of the two readers: the Python code, and the one in Rust where it is installed."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from processors.spans import NATIVE, NATIVE_REASON

READERS = ("python", "native")


@contextmanager
def reader(name: str) -> Iterator[None]:
    """Read with that one of `READERS`; skips the test where it is not in use.

    Raises:
        AssertionError: no module knows of a reader to switch off.
    """
    if NATIVE is None:
        if name == "native":
            pytest.skip(NATIVE_REASON)
        yield
        return
    modules = [module for module in list(sys.modules.values()) if getattr(module, "NATIVE", None) is NATIVE]
    assert modules
    with pytest.MonkeyPatch.context() as patch:
        for module in modules if name == "python" else ():
            patch.setattr(module, "NATIVE", None)
        yield
