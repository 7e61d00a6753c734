"""Whether a sender's traces are accepted by each listener and graded behind it.

The traces are those of a self-check: the service itself created their ids and drops them once they are
graded, so they are in no series, store or page. Where an address may lead to another process than the one
that created them, such as a balancer's, an empty request is sent instead.
"""

import asyncio
import contextlib
import io
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from yarl import URL

from collector.clock import Clock
from collector.config_fields import reachable_address
from collector.configuration import ServiceConfig
from collector.errors import ExportError, StartupError
from collector.exporters import ExporterContext, exporter_types
from collector.receivers import TRACES_PATH, ServerConfig
from collector.telemetry import Metrics
from collector.tools.doctor.hop import Hop, broken, unknown, works
from collector.tools.doctor.refusals import refusal
from collector.tools.doctor.wire import Remote, wire_problem
from collector.tools.http_client import NoAnswerError
from collector.tools.running_service import RunningService
from collector.tools.self_check import ListenerTls, self_check_request
from processors.model import JsonObject, Outcome

_TIMEOUT = "10s"
_LOOK_SECONDS = 0.2
_PORT_OF_HTTP = 4318
_OTHER_PROTOCOL = (
    "Set OTEL_EXPORTER_OTLP_PROTOCOL of the sender to what listens there, or send to the other port."
)


@dataclass(frozen=True, slots=True)
class Sender:
    """How a sender would send: None means as the configuration of the listener says.

    `endpoint` is `host:port` with or without `http://` or `https://`.
    """

    endpoint: str | None = None
    ca_file: Path | None = None
    token_file: Path | None = None


@dataclass(frozen=True, slots=True)
class _Target:
    remote: Remote
    token_file: Path | None
    client: tuple[Path, Path] | None
    is_own: bool
    """Whether it is a listener of the service that is queried for verdicts."""


class ListenerTrial:
    """Sends to each listener of `config`, or to `sender.endpoint`, and queries `service` for the verdicts."""

    def __init__(
        self, config: ServiceConfig, sender: Sender, service: RunningService | None, clock: Clock
    ) -> None:
        self._config = config
        self._sender = sender
        self._service = service
        self._clock = clock

    async def hops(self) -> list[Hop]:
        """A hop for each listener, and one for the verdicts behind them."""
        try:
            targets = self._targets()
        except StartupError as error:
            advice = "Correct the path or the mode of the file."
            return [broken("receivers.otlp", str(error), "certificates that can be read", advice)]
        hops: list[Hop] = []
        awaited: dict[str, float] = {}
        for target in targets:
            request, traces = b"", dict[str, float]()
            if target.is_own and self._service is not None:
                with contextlib.suppress(NoAnswerError):  # the hop of the telemetry endpoint reports it
                    request, traces = _probe(await asyncio.to_thread(self._service.expect_probe))
            problem = await self._problem(target, request)
            if problem is None:
                awaited |= traces
            accepted = "accepted a trace" if traces else "accepted an empty request"
            hops.append(problem or works(target.remote.where, accepted))
        return [*hops, await self._verdicts(awaited)]

    def _targets(self) -> list[_Target]:
        protocols = self._config.receivers.otlp.protocols
        listeners: list[tuple[Literal["grpc", "http"], ServerConfig]] = []
        if protocols.grpc is not None:
            listeners.append(("grpc", protocols.grpc))
        if protocols.http is not None:
            listeners.append(("http", protocols.http))
        own = [(speaks, listener, reachable_address(listener.endpoint)) for speaks, listener in listeners]
        text = self._sender.endpoint
        if text is None:
            return [self._target(*listener, None, is_own=True) for listener in own]
        url = URL(text if "://" in text else f"//{text}")
        port = url.port or (443 if url.scheme == "https" else _PORT_OF_HTTP)
        address = reachable_address(f"{f'[{url.host}]' if ':' in (url.host or '') else url.host}:{port}")
        same = [listener for listener in own if listener[2] == address]
        alike = [listener for listener in own if listener[2].endswith(f":{port}")]
        by_custom = [listener for listener in own if (listener[0] == "http") is (port == _PORT_OF_HTTP)]
        speaks, listener, _ = (same or alike or by_custom or own)[0]
        secure = None if not url.scheme else url.scheme == "https"
        return [self._target(speaks, listener, address, secure, is_own=bool(same))]

    def _target(
        self,
        speaks: Literal["grpc", "http"],
        listener: ServerConfig,
        address: str,
        secure: bool | None,
        *,
        is_own: bool,
    ) -> _Target:
        host, _, port = address.rpartition(":")
        host = host.strip("[]")
        trusted, name, client = self._sender.ca_file, host, None
        if listener.tls is not None:
            self_check = self._config.service.telemetry.self_check
            own_certificate = ListenerTls(listener.tls, self_check.tls)
            if listener.tls.client_ca_file is not None:
                shown = self_check.tls or listener.tls
                client = shown.cert_file, shown.key_file
            if trusted is None and is_own:
                trusted = listener.tls.cert_file
                with contextlib.suppress(ssl.SSLError):  # what is wrong with it shows when it is used
                    name = own_certificate.certificate_name() or name
        remote = Remote(
            where=f"receivers.otlp.protocols.{speaks} ({address})" if is_own else f"endpoint {address}",
            host=host,
            port=int(port),
            speaks=speaks,
            secure=listener.tls is not None if secure is None else secure,
            trusted=trusted,
            name=name,
            tls_setting="the sender's tls",
            other_protocol=_OTHER_PROTOCOL,
        )
        token_file = self._sender.token_file
        if token_file is None and listener.auth is not None:
            token_file = listener.auth.bearer_token_file
        return _Target(remote, token_file, client, is_own)

    async def _problem(self, target: _Target, request: bytes) -> Hop | None:
        """What keeps the listener from accepting `request`; None: it does."""
        where = target.remote.where
        headers: dict[str, str] = {}
        if (file := target.token_file) is not None:
            try:
                tokens = file.read_text().split()
                missing = "" if tokens else f"{file} is empty"
            except (OSError, UnicodeDecodeError) as error:
                missing = f"{file} cannot be read: {error}"
            if missing:
                advice = "Write a token that the listener accepts into the file."
                return broken(where, missing, "a token to send", advice)
            headers["authorization"] = f"Bearer {tokens[0]}"
        exporter = _exporter(target, headers, self._clock)
        try:
            await exporter.start()
            answer = await exporter.export(request, 1)
        except ExportError as error:
            problem = await asyncio.to_thread(wire_problem, target.remote)
            return problem or refusal(where, str(error), "listener")
        except StartupError as error:
            return broken(where, str(error), "files that can be read", "Correct the path or its mode.")
        finally:
            await exporter.shutdown(self._clock.monotonic())
        if answer.rejected_spans:
            rejected = f"{answer.rejected_spans} spans were rejected: {answer.message}"
            return broken(where, rejected, "that all are accepted", "See the log of the service.")
        return None

    async def _verdicts(self, awaited: Mapping[str, float]) -> Hop:
        where = "processors.evaluation"
        if self._service is None or not awaited:
            return unknown(
                where,
                "no trace of this probe reached grading",
                "Repair the hops above, and run this where the telemetry endpoint of the service is reached.",
            )
        patience = max(awaited.values())
        deadline = self._clock.monotonic() + patience
        while True:
            try:
                verdicts = await asyncio.to_thread(self._service.probe_verdicts)
            except NoAnswerError as error:
                return broken(where, str(error), "the verdicts", "See the log of the service.")
            problems = [verdicts.get(trace) for trace in awaited]
            if None not in problems:
                break
            if self._clock.monotonic() >= deadline:
                return broken(
                    where,
                    f"no verdict within {patience:g} s",
                    "a verdict soon after processors.group_by_trace.root_grace",
                    "See the log of the service: its loop may be busy, or its finish clock stand still "
                    "because it refuses spans.",
                )
            await self._clock.sleep(_LOOK_SECONDS)
        if wrong := [str(problem) for problem in problems if problem]:
            return broken(
                where,
                "; ".join(wrong),
                "one trace that passes and one that fails",
                "Report this with the log of the service: the grading of fixed traces went wrong.",
            )
        return works(where, f"{len(problems)} traces were graded as expected, and dropped")


def _probe(probe: JsonObject) -> tuple[bytes, dict[str, float]]:
    """The request to send for what the service expects, and how long each of its traces may take."""
    traces, unix_nano, patience = probe.get("traces"), probe.get("unix_nano"), probe.get("patience_seconds")
    if not (isinstance(traces, dict) and isinstance(unix_nano, int) and isinstance(patience, int | float)):
        raise NoAnswerError("the telemetry endpoint gave no traces to send")
    expected = {bytes.fromhex(trace): Outcome(str(outcome)) for trace, outcome in traces.items()}
    return self_check_request(expected, unix_nano), dict.fromkeys(traces, float(patience))


def _exporter(target: _Target, headers: Mapping[str, str], clock: Clock) -> Any:
    """The exporter of this service that would send there."""
    remote = target.remote
    address = f"{'https' if remote.secure else 'http'}://{remote.address}"
    tls: JsonObject = {}
    if remote.secure:
        if remote.trusted is not None:
            tls["ca_file"] = str(remote.trusted.absolute())
        if target.client is not None:
            tls["cert_file"], tls["key_file"] = (str(path.absolute()) for path in target.client)
        if remote.name != remote.host:
            tls["server_name_override"] = remote.name
    is_http = remote.speaks == "http"
    endpoint: JsonObject = {"traces_endpoint": address + TRACES_PATH} if is_http else {"endpoint": address}
    settings: JsonObject = {**endpoint, "tls": tls, "headers": dict(headers), "timeout": _TIMEOUT}
    kind = exporter_types()["otlp_http" if is_http else "otlp"]
    context = ExporterContext(clock=clock, metrics=Metrics(), console=io.StringIO())
    return kind.create("doctor", kind.config_model.model_validate(settings), context)
