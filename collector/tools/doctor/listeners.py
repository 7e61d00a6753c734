"""Whether a sender's traces are taken by each listener and graded behind it.

The traces are those of a self-check: the service itself made their ids and drops them when they are graded,
so they are in no series, store or page. Where an address may lead to another process than the one that made
them, such as a balancer's, an empty request is sent instead.
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
from collector.telemetry import Metrics, SelfCheckConfig
from collector.tools.doctor.hop import Hop, Trouble, unknown, works
from collector.tools.doctor.refusals import LISTENER_ADVICE, refusal_trouble
from collector.tools.doctor.wire import Remote, wire_trouble
from collector.tools.running_service import NoAnswerError, RunningService
from collector.tools.self_check import ListenerTls, self_check_request
from processors.model import JsonObject, Outcome

_TIMEOUT = "10s"
_LOOK_SECONDS = 0.2
_PORT_OF_HTTP = 4318


@dataclass(frozen=True, slots=True)
class Sender:
    """How a sender would send: None takes what the configuration of the listener says.

    `endpoint` is `host:port` with or without `http://` or `https://`.
    """

    endpoint: str | None = None
    ca_file: Path | None = None
    token_file: Path | None = None


@dataclass(frozen=True, slots=True)
class _Target:
    where: str
    remote: Remote
    token_file: Path | None
    client: tuple[Path, Path] | None
    is_own: bool
    """Whether it is a listener of the service that is asked for verdicts."""


class ListenerTrial:
    """Sends to each listener of `config`, or to `sender.endpoint`, and asks `service` for the verdicts."""

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
            return [
                Trouble(
                    str(error), "certificates that can be read", "Correct the path or the mode of the file."
                ).at("receivers.otlp")
            ]
        hops: list[Hop] = []
        awaited: dict[str, float] = {}
        for target in targets:
            hop, traces = await self._send(target)
            hops.append(hop)
            awaited.update(traces)
        hops.append(await self._verdicts(awaited))
        return hops

    def _targets(self) -> list[_Target]:
        protocols = self._config.receivers.otlp.protocols
        listeners: list[tuple[Literal["grpc", "http"], ServerConfig]] = []
        if protocols.grpc is not None:
            listeners.append(("grpc", protocols.grpc))
        if protocols.http is not None:
            listeners.append(("http", protocols.http))
        own = [(speaks, listener, reachable_address(listener.endpoint)) for speaks, listener in listeners]
        if self._sender.endpoint is None:
            return [self._target(speaks, listener, address, None, True) for speaks, listener, address in own]
        text = self._sender.endpoint
        url = URL(text if "://" in text else f"//{text}")
        port = url.port or (443 if url.scheme == "https" else _PORT_OF_HTTP)
        address = reachable_address(f"{f'[{url.host}]' if ':' in (url.host or '') else url.host}:{port}")
        same = [(speaks, listener) for speaks, listener, at in own if at == address]
        alike = [(speaks, listener) for speaks, listener, at in own if at.endswith(f":{port}")]
        custom: Literal["grpc", "http"] = "http" if port == _PORT_OF_HTTP else "grpc"
        by_custom = [pair for pair in listeners if pair[0] == custom] or listeners
        speaks, listener = (same or alike or by_custom)[0]
        secure = None if not url.scheme else url.scheme == "https"
        return [self._target(speaks, listener, address, secure, bool(same))]

    def _target(
        self,
        speaks: Literal["grpc", "http"],
        listener: ServerConfig,
        address: str,
        secure: bool | None,
        is_own: bool,
    ) -> _Target:
        host, _, port = address.rpartition(":")
        trusted, name = self._sender.ca_file, host.strip("[]")
        client = None
        if listener.tls is not None:
            own_certificate = ListenerTls(listener.tls, self._config.service.telemetry.self_check.tls)
            if listener.tls.client_ca_file is not None:
                shown = self._self_check.tls or listener.tls
                client = shown.cert_file, shown.key_file
            if trusted is None and is_own:
                trusted = listener.tls.cert_file
                with contextlib.suppress(ssl.SSLError):  # what is wrong with it is found when it is used
                    name = own_certificate.certificate_name() or name
        remote = Remote(
            host.strip("[]"),
            int(port),
            speaks,
            secure=listener.tls is not None if secure is None else secure,
            trusted=trusted,
            name=name,
            tls_setting="the sender's tls",
            other_protocol="Set OTEL_EXPORTER_OTLP_PROTOCOL of the sender to what listens there, or send to "
            "the other port.",
        )
        token = self._sender.token_file
        if token is None and listener.auth is not None:
            token = listener.auth.bearer_token_file
        where = f"receivers.otlp.protocols.{speaks} ({address})" if is_own else f"endpoint {address}"
        return _Target(where, remote, token, client, is_own)

    @property
    def _self_check(self) -> SelfCheckConfig:
        return self._config.service.telemetry.self_check

    async def _send(self, target: _Target) -> tuple[Hop, Mapping[str, float]]:
        """The hop, and the traces to wait for with how long."""
        request = b""
        traces: dict[str, float] = {}
        if target.is_own and self._service is not None:
            try:
                told = await asyncio.to_thread(self._service.expect_probe)
                request, traces = _probe(told)
            except NoAnswerError:
                pass  # told of by the hop of the telemetry endpoint
        trouble = await self._trouble(target, request)
        if trouble is not None:
            return trouble.at(target.where), {}
        return works(target.where, "took a trace" if traces else "took an empty request"), traces

    async def _trouble(self, target: _Target, request: bytes) -> Trouble | None:
        headers: dict[str, str] = {}
        if target.token_file is not None:
            try:
                tokens = target.token_file.read_text().split()
            except (OSError, UnicodeDecodeError) as error:
                return _no_token(f"{target.token_file} cannot be read: {error}")
            if not tokens:
                return _no_token(f"{target.token_file} is empty")
            headers["authorization"] = f"Bearer {tokens[0]}"
        exporter = _exporter(target, headers, self._clock)
        try:
            await exporter.start()
            answer = await exporter.export(request, 1)
        except ExportError as error:
            trouble = await asyncio.to_thread(wire_trouble, target.remote)
            return trouble or refusal_trouble(str(error), LISTENER_ADVICE)
        except StartupError as error:
            return Trouble(str(error), "files that can be read", "Correct the path or its mode.")
        finally:
            await exporter.shutdown(self._clock.monotonic())
        if answer.rejected_spans:
            return Trouble(
                f"{answer.rejected_spans} spans were rejected: {answer.message}",
                "that all are taken",
                LISTENER_ADVICE["other"],
            )
        return None

    async def _verdicts(self, awaited: Mapping[str, float]) -> Hop:
        where = "processors.evaluation"
        if self._service is None or not awaited:
            return unknown(
                where,
                "no trace of this probe came as far as grading",
                "Mend the hops above, and run this where the telemetry endpoint of the service is reached.",
            )
        deadline = self._clock.monotonic() + max(awaited.values())
        problems: dict[str, Any] = {}
        while True:
            try:
                told = await asyncio.to_thread(self._service.probe_verdicts)
            except NoAnswerError as error:
                return Trouble(str(error), "the verdicts", "See the log of the service.").at(where)
            problems = {trace: told.get(trace) for trace in awaited}
            if all(problem is not None for problem in problems.values()):
                break
            if self._clock.monotonic() >= deadline:
                return Trouble(
                    f"no verdict within {max(awaited.values()):g} s",
                    "a verdict soon after processors.group_by_trace.root_grace",
                    "See the log of the service: its loop may be busy, or its finish clock stand still "
                    "because it refuses spans.",
                ).at(where)
            await self._clock.sleep(_LOOK_SECONDS)
        wrong = [str(problem) for problem in problems.values() if problem]
        if wrong:
            return Trouble(
                "; ".join(wrong),
                "one trace that passes and one that fails",
                "Report this with the log of the service: the grading of fixed traces went wrong.",
            ).at(where)
        return works(where, f"{len(problems)} traces were graded as they had to be, and dropped")


def _no_token(found: str) -> Trouble:
    return Trouble(found, "a token to send", "Write a token that the listener accepts into the file.")


def _probe(told: JsonObject) -> tuple[bytes, dict[str, float]]:
    """The request to send for what the service expects, and how long each of its traces may take."""
    traces, unix_nano, patience = told.get("traces"), told.get("unix_nano"), told.get("patience_seconds")
    if (
        not isinstance(traces, dict)
        or not isinstance(unix_nano, int)
        or not isinstance(patience, int | float)
    ):
        raise NoAnswerError("the telemetry endpoint gave no traces to send")
    expected = {bytes.fromhex(trace): Outcome(str(outcome)) for trace, outcome in traces.items()}
    return self_check_request(expected, unix_nano), dict.fromkeys(traces, float(patience))


def _exporter(target: _Target, headers: Mapping[str, str], clock: Clock) -> Any:
    """The stock exporter that would send there."""
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
    settings: JsonObject = {"tls": tls, "headers": dict(headers), "timeout": _TIMEOUT}
    if remote.speaks == "http":
        settings["traces_endpoint"] = address + TRACES_PATH
    else:
        settings["endpoint"] = address
    kind = exporter_types()["otlp" if remote.speaks == "grpc" else "otlp_http"]
    context = ExporterContext(clock=clock, metrics=Metrics(), console=io.StringIO())
    return kind.create("doctor", kind.config_model.model_validate(settings), context)
