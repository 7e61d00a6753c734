"""Where the service sends telemetry about itself, and that this must not be the service."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from opentelemetry.sdk.resources import Resource

from collector.clock import Clock, ends_within
from collector.endpoint import parse_endpoint
from collector.errors import StartupError
from collector.telemetry.telemetry_config import OtlpConfig, TelemetryConfig

_WILDCARDS = ("0.0.0.0", "::")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_GRPC_PORT = 4317


def refuse_own_receivers(config: TelemetryConfig, receivers: Iterable[str]) -> None:
    """Check that the service's own spans and logs do not come back to it.

    Args:
        config: What was configured.
        receivers: `host:port` of every receiver, with real ports.

    Raises:
        StartupError: A destination is one of the receivers.
    """
    listening = [(receiver, *parse_endpoint(receiver)) for receiver in receivers]
    for signal, otlp in (("traces", config.traces.otlp), ("logs", config.logs.otlp)):
        if otlp is None:
            continue
        host, port = _host_and_port(otlp)
        for receiver, receiver_host, receiver_port in listening:
            if port == receiver_port and _reaches(host, receiver_host):
                raise StartupError(
                    f"service.telemetry.{signal}.otlp.endpoint: {otlp.endpoint} is this service's own "
                    f"receiver {receiver}; its telemetry must go elsewhere"
                )


def grpc_target(config: OtlpConfig) -> tuple[str, bool]:
    """`host:port`, and whether it is spoken to without TLS: only `https://` asks for it."""
    host, port = _host_and_port(config)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}", not config.endpoint.startswith("https://")


def http_url(config: OtlpConfig, default_path: str) -> str:
    """The URL to post to; `default_path` where the configured one has no path."""
    url = config.endpoint if "://" in config.endpoint else f"http://{config.endpoint}"
    return url.rstrip("/") + default_path if urlsplit(url).path in ("", "/") else url


def header_values(config: OtlpConfig) -> dict[str, str]:
    """Headers in the clear, names in lower case as gRPC wants them."""
    return {name.lower(): value.get_secret_value() for name, value in config.headers.items()}


def own_resource(version: str, instance: str) -> Resource:
    """Who the service's telemetry is from."""
    return Resource(
        {"service.name": "tracegrade", "service.version": version, "service.instance.id": instance}
    )


async def finish_by(deadline: float, clock: Clock, shutdown: Callable[[], object]) -> None:
    """Run a blocking shutdown, and leave it behind at `deadline`."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def run() -> None:
        shutdown()
        if not loop.is_closed():
            loop.call_soon_threadsafe(done.set)

    # A daemon: a backend that hangs must not hold up the exit of the process.
    threading.Thread(target=run, name="telemetry-shutdown", daemon=True).start()
    await ends_within(max(0.0, deadline - clock.monotonic()), done.wait(), clock)


def _host_and_port(config: OtlpConfig) -> tuple[str, int]:
    has_scheme = "://" in config.endpoint
    url = urlsplit(config.endpoint if has_scheme else f"//{config.endpoint}")
    default = _GRPC_PORT if config.protocol == "grpc" else _DEFAULT_PORTS.get(url.scheme, 80)
    try:
        return url.hostname or "", url.port or default
    except ValueError as error:
        raise StartupError(f"service.telemetry: {config.endpoint}: {error}") from error


def _reaches(host: str, receiver_host: str) -> bool:
    """Whether a connection to `host` arrives at a listener on `receiver_host`, as far as can be seen."""
    if host == receiver_host:
        return True
    addresses = _addresses(host)
    if receiver_host in _WILDCARDS:
        return any(_is_local(address) for address in addresses)
    return bool(addresses & _addresses(receiver_host))


def _addresses(host: str) -> set[str]:
    try:
        return {str(entry[4][0]) for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except OSError:
        return set()


def _is_local(address: str) -> bool:
    """Whether the address belongs to this machine: only then can a socket be bound to it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True
