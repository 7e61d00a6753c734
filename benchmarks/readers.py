"""The Python code by itself where the reader in Rust is in use, to compare the two in one process."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from processors.spans import NATIVE


@contextmanager
def python_alone() -> Iterator[None]:
    """Switch the reader in Rust off meanwhile, in every module that was imported."""
    native = NATIVE  # which is switched off here too
    modules = [vars(module) for module in list(sys.modules.values()) if hasattr(module, "__dict__")]
    using = [names for names in modules if native is not None and names.get("NATIVE") is native]
    for names in using:
        names["NATIVE"] = None
    try:
        yield
    finally:
        for names in using:
            names["NATIVE"] = native
