"""The budget of held bytes."""

import pytest
from pydantic import ValidationError

from collector.memory_limiter import MemoryLimiter, MemoryLimiterConfig


def test_bytes_are_taken_while_they_fit_and_come_back() -> None:
    limiter = MemoryLimiter(100)

    taken = [limiter.try_acquire(60), limiter.try_acquire(41), limiter.try_acquire(40)]
    limiter.release(60)

    assert [True, False, True] == taken
    assert 40 == limiter.used


def test_more_than_was_taken_cannot_be_given_back() -> None:
    limiter = MemoryLimiter(100)

    with pytest.raises(ValueError, match="1 bytes released, but only 0 are held"):
        limiter.release(1)


def test_shared_bytes_fill_the_limit_for_as_long_as_they_are_there() -> None:
    shared = 30
    limiter = MemoryLimiter(100, lambda: shared)

    taken = [limiter.try_acquire(71), limiter.try_acquire(70)]
    used = limiter.used
    shared = 0

    assert [False, True] == taken
    assert (100, 70) == (used, limiter.used)
    assert limiter.try_acquire(30)


def test_holders_are_asked_for_relief_until_it_fits() -> None:
    limiter = MemoryLimiter(100)
    limiter.try_acquire(100)
    asked: list[int] = []

    def give_ten(wanted: int) -> int:
        asked.append(wanted)
        limiter.release(10)
        return 10

    limiter.add_relief(give_ten)

    assert limiter.try_acquire(25)
    assert [25, 15, 5] == asked
    assert 95 == limiter.used


def test_relief_that_frees_nothing_yet_is_asked_again_while_it_lets_go() -> None:
    limiter = MemoryLimiter(100)
    limiter.try_acquire(100)
    let_go = iter([50, 50, 0])

    limiter.add_relief(lambda wanted: next(let_go))

    assert not limiter.try_acquire(10)
    assert [] == list(let_go)


def test_nobody_is_asked_for_what_could_never_fit() -> None:
    limiter = MemoryLimiter(100)
    asked: list[int] = []

    def claim_relief(wanted: int) -> int:
        asked.append(wanted)
        return 1

    limiter.add_relief(claim_relief)

    assert not limiter.try_acquire(101)
    assert [] == asked


def test_the_limit_is_configured_in_mebibytes() -> None:
    assert 2048 * 1024 * 1024 == MemoryLimiterConfig().limit_bytes
    with pytest.raises(ValidationError):
        MemoryLimiterConfig(limit_mib=0)
