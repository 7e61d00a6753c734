import logging
from pathlib import Path

import pytest

from collector.clock import ManualClock
from collector.errors import StartupError, Unauthenticated
from collector.receivers import BearerAuth, ServerAuthConfig


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text("one\n  two  \r\n\n")
    return path


@pytest.fixture
def auth(tokens: Path, clock: ManualClock) -> BearerAuth:
    auth = BearerAuth(ServerAuthConfig(bearer_token_file=tokens), clock)
    auth.load()
    return auth


@pytest.mark.parametrize("header", ["Bearer one", "bearer two", b"BEARER one", "Bearer  one "])
def test_a_token_of_the_file_passes_whatever_the_case_of_the_scheme(
    auth: BearerAuth, header: str | bytes
) -> None:
    auth.check(header)


@pytest.mark.parametrize(
    "header", [None, "", "one", "Bearer", "Bearer ", "Bearer One", "Bearer onetwo", "Basic one", "Bearer é"]
)
def test_anything_else_is_unauthenticated(auth: BearerAuth, header: str | None) -> None:
    with pytest.raises(Unauthenticated):
        auth.check(header)


def test_a_changed_file_is_read_again_after_a_second(
    auth: BearerAuth, tokens: Path, clock: ManualClock
) -> None:
    tokens.write_text("another token\n")

    auth.check("Bearer one")
    clock.advance(1)
    auth.check("Bearer another token")

    with pytest.raises(Unauthenticated):
        auth.check("Bearer one")


@pytest.mark.parametrize("content", [None, "\n \n"])
def test_an_unusable_file_leaves_the_tokens_in_force(
    auth: BearerAuth, tokens: Path, clock: ManualClock, content: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    if content is None:
        tokens.unlink()
    else:
        tokens.write_text(content)
    clock.advance(1)

    auth.check("Bearer one")

    assert [logging.ERROR] == [record.levelno for record in caplog.records]
    with pytest.raises(Unauthenticated):
        auth.check("Bearer ")


def test_a_file_without_a_token_stops_the_start(tokens: Path, clock: ManualClock) -> None:
    tokens.write_text("\n\n")

    with pytest.raises(StartupError, match="expected a token on each line, found none"):
        BearerAuth(ServerAuthConfig(bearer_token_file=tokens), clock).load()
