"""Python's garbage collector, which traverses what stays loaded again and again while more is loaded."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """No garbage collection of cycles within, in any thread; what was on before is on again afterwards.

    For loading what stays: all of it is in use, so that a collection would traverse it in vain.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
