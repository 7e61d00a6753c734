import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from collector.cli import run_command
from collector.commands.health import query_readiness


class Answer(http.server.BaseHTTPRequestHandler):
    """Says that it is ready, in HTTP or in something else."""

    raw = b"HTTP/1.0 200 OK\r\n\r\nready\n"

    def do_GET(self) -> None:
        self.wfile.write(self.raw)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@contextmanager
def serving(raw: bytes) -> Iterator[int]:
    handler = type("Handler", (Answer,), {"raw": raw})
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def test_an_endpoint_without_a_host_is_asked_on_this_machine() -> None:
    with serving(Answer.raw) as port:
        assert (True, "ready") == query_readiness(f":{port}")


def test_the_proxy_of_other_traffic_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)

    with serving(Answer.raw) as port:
        assert (True, "ready") == query_readiness(f"127.0.0.1:{port}")


@pytest.mark.parametrize("raw", [b"no HTTP\r\n\r\n", b""])
def test_an_answer_that_is_no_http_is_none(raw: bytes) -> None:
    with serving(raw) as port:
        is_ready, answer = query_readiness(f"127.0.0.1:{port}")

    assert not is_ready
    assert answer.startswith(f"no answer from http://127.0.0.1:{port}/readyz: ")


@pytest.mark.parametrize("endpoint", ["a b:1", "http://127.0.0.1:9464", "127.0.0.1:99999", ""])
def test_what_is_no_endpoint_is_a_mistake_of_the_command_line(
    endpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        run_command(["health", "--endpoint", endpoint])

    assert 2 == left.value.code
    assert "expected host:port" in capsys.readouterr().err
