"""Whether a sender's traces are accepted by each listener and graded behind it.

The traces are those of a self-check: the service itself created their ids and drops them once they are
graded, so they are in no series, store or page. Where an address may lead to another process than the one
that created them, such as a balancer's, an empty request is sent instead.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel
from yarl import URL

from collector.clock import Clock
from collector.config_fields import reachable_address
from collector.configuration import ServiceConfig
from collector.errors import StartupError
from collector.exporters import exporter_types
from collector.receivers import ServerConfig
from collector.tools.doctor.hop import Hop, State
from collector.tools.doctor.sending import open_exporter, sent
from collector.tools.http_client import NoAnswerError
from collector.tools.running_service import RunningService
from collector.tools.self_check import ListenerTls, NotAcceptedError, authorization, self_check_requests
from collector.trace import Signal
from processors.model import JsonObject, Outcome

_TIMEOUT = "10s"
_LOOK_SECONDS = 0.2
_PORT_OF_HTTP = 4318
_NO_REQUESTS: Mapping[Signal, bytes] = {"logs": b"", "traces": b""}


@dataclass(frozen=True, slots=True)
class Sender:
    """How a sender would send: None means as the listener is configured.

    `endpoint` is `host:port` with or without `http://` or `https://`.
    """

    endpoint: str | None = None
    ca_file: Path | None = None
    token_file: Path | None = None


@dataclass(frozen=True, slots=True)
class _Target:
    """A listener to send to; `secure` None: as it is configured.

    `is_own`: it belongs to the service that is queried for verdicts.
    """

    kind: Literal["otlp", "otlp_http"]
    listener: ServerConfig
    address: str
    secure: bool | None = None
    is_own: bool = True

    @property
    def where(self) -> str:
        protocol = "grpc" if self.kind == "otlp" else "http"
        place = f"receivers.otlp.protocols.{protocol} ({self.address})"
        return place if self.is_own else f"endpoint {self.address}"


@dataclass(eq=False)
class ListenerTrial:
    """Sends to each listener of `config`, or to `sender.endpoint`, and queries `service` for the verdicts."""

    config: ServiceConfig
    sender: Sender
    service: RunningService | None
    clock: Clock

    async def hops(self) -> list[Hop]:
        """A hop for each listener, and one for the verdicts behind them."""
        hops: list[Hop] = []
        awaited: dict[str, float] = {}
        for target in self._targets():
            requests, traces = _NO_REQUESTS, dict[str, float]()
            if target.is_own and self.service is not None:
                with contextlib.suppress(NoAnswerError):  # the hop of the telemetry endpoint reports it
                    requests, traces = _probe(await asyncio.to_thread(self.service.expect_probe))
            of_target = await self._sent(target, requests)
            if of_target[0].state is State.WORKS:
                awaited |= traces
            hops += of_target
        return [*hops, await self._verdicts(awaited)]

    def _targets(self) -> list[_Target]:
        protocols = self.config.receivers.otlp.protocols
        own: list[_Target] = []
        if protocols.grpc is not None:
            own.append(_Target("otlp", protocols.grpc, reachable_address(protocols.grpc.endpoint)))
        if protocols.http is not None:
            own.append(_Target("otlp_http", protocols.http, reachable_address(protocols.http.endpoint)))
        text = self.sender.endpoint
        if text is None:
            return own
        url = URL(text if "://" in text else f"//{text}")
        port = url.port or (443 if url.scheme == "https" else _PORT_OF_HTTP)
        address = reachable_address(f"{f'[{url.host}]' if ':' in (url.host or '') else url.host}:{port}")
        same = [target for target in own if target.address == address]
        alike = [target for target in own if target.address.endswith(f":{port}")]
        by_custom = [target for target in own if (target.kind == "otlp_http") is (port == _PORT_OF_HTTP)]
        like = (same or alike or by_custom or own)[0]
        secure = None if not url.scheme else url.scheme == "https"
        return [replace(like, address=address, secure=secure, is_own=bool(same))]

    async def _sent(self, target: _Target, requests: Mapping[Signal, bytes]) -> list[Hop]:
        """The hop of traces, and where it works that of log records, which are sent first."""
        try:
            settings = self._settings(target)
            hops: dict[Signal, Hop] = {}
            async with open_exporter(target.kind, settings, self.clock) as exporter:
                for signal, request in requests.items():
                    where = target.where if signal == "traces" else f"{target.where} (log records)"
                    url, sending = exporter.endpoints[signal], exporter.export(request, 1, signal)
                    hops[signal] = await sent(where, url, settings, sending)
            works = hops["traces"].state is State.WORKS
            return [hops["traces"], hops["logs"]] if works else [hops["traces"]]
        except NotAcceptedError as error:
            advice = "Write a token that the listener accepts into the file."
            return [Hop(target.where, str(error), "a token to send", advice)]
        except StartupError as error:
            advice = "Correct the path or the mode of the file."
            return [Hop(target.where, str(error), "files that can be read", advice)]

    def _settings(self, target: _Target) -> BaseModel:
        """Those of an exporter of this service that would send there.

        Raises:
            NotAcceptedError: there is no token to send.
            StartupError: a certificate cannot be read.
        """
        listener, sender = target.listener, self.sender
        secure = listener.tls is not None if target.secure is None else target.secure
        tls: JsonObject = {}
        if sender.ca_file is not None:
            tls["ca_file"] = str(sender.ca_file.absolute())
        if secure and listener.tls is not None:
            self_check = self.config.service.telemetry.self_check
            own_certificate = ListenerTls(listener.tls, self_check.tls)
            if listener.tls.client_ca_file is not None:
                shown = self_check.tls or listener.tls
                tls |= {"cert_file": str(shown.cert_file), "key_file": str(shown.key_file)}
            if target.is_own and sender.ca_file is None:
                tls["ca_file"] = str(listener.tls.cert_file.absolute())
                with contextlib.suppress(ssl.SSLError):  # what is wrong with it shows when it is used
                    tls["server_name_override"] = own_certificate.certificate_name() or None
        token_file = sender.token_file or (listener.auth and listener.auth.bearer_token_file)
        address = f"{'https' if secure else 'http'}://{target.address}"
        return exporter_types()[target.kind].config_model.model_validate(
            {
                "endpoint": address,
                "tls": tls,
                "headers": {"authorization": authorization(token_file)} if token_file else {},
                "timeout": _TIMEOUT,
            }
        )

    async def _verdicts(self, awaited: Mapping[str, float]) -> Hop:
        where = "processors.evaluation"
        if self.service is None or not awaited:
            return Hop(
                where,
                "no trace of this probe reached grading",
                advice="Repair the hops above, and run this where the telemetry endpoint of the service is "
                "reached.",
            )
        patience = max(awaited.values())
        deadline = self.clock.monotonic() + patience
        while True:
            try:
                verdicts = await asyncio.to_thread(self.service.probe_verdicts)
            except NoAnswerError as error:
                return Hop(where, str(error), "the verdicts", "See the log of the service.")
            problems = [verdicts.get(trace) for trace in awaited]
            if None not in problems:
                break
            if self.clock.monotonic() >= deadline:
                return Hop(
                    where,
                    f"no verdict within {patience:g} s",
                    "a verdict soon after processors.group_by_trace.root_grace",
                    "See the log of the service: its loop may be busy, or its finish clock stand still "
                    "because it refuses spans.",
                )
            await self.clock.sleep(_LOOK_SECONDS)
        if wrong := [str(problem) for problem in problems if problem]:
            return Hop(
                where,
                "; ".join(wrong),
                "one trace that passes and one that fails",
                "Report this with the log of the service: the grading of fixed traces went wrong.",
            )
        return Hop(where, f"{len(problems)} traces were graded as expected, and dropped")


def _probe(probe: JsonObject) -> tuple[Mapping[Signal, bytes], dict[str, float]]:
    """The requests to send for what the service expects, and how long each of its traces may take."""
    traces, unix_nano, patience = probe.get("traces"), probe.get("unix_nano"), probe.get("patience_seconds")
    if not (isinstance(traces, dict) and isinstance(unix_nano, int) and isinstance(patience, int | float)):
        raise NoAnswerError("the telemetry endpoint gave no traces to send")
    expected = {bytes.fromhex(trace): Outcome(str(outcome)) for trace, outcome in traces.items()}
    return self_check_requests(expected, unix_nano), dict.fromkeys(traces, float(patience))
