"""Replicas of the service behind Collectors that balance by trace id and find them through a name.

Everything is real: the name server, two Collectors, the replicas on loopback addresses. Every part asks the
name server of the test, since it runs in a mount namespace of its own with another `/etc/resolv.conf`.
"""

import asyncio
import os
import random
import shutil
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, cast

import pytest

from collector.criteria import load_criteria
from collector.otlp import join_spans
from processors.evaluate import evaluate_run
from processors.model import FinishReason, JsonObject, JsonValue
from processors.reconstruction import reconstruct
from processors.spans import RawSpan, read_span_head
from tests.support.agent_spans import TRACE_ID, agent, tool
from tests.support.backend_server import free_port
from tests.support.name_server import NameServer
from tests.support.otel_collector import OtelCollector
from tests.support.otlp_senders import Answer, GrpcSender
from tests.support.service_process import ServiceProcess

NAME = "replicas.test"

SpanKey: TypeAlias = tuple[int, str]
"""The number of a trace, and the id of one of its spans."""

CRITERIA = """
agents:
  shop:
    evaluations:
      - evaluator: tool-call-count
        criteria: {tool_calls_count: {search: ["=", 3], pay: ["=", 1]}}
      - evaluator: tool-call-order
        criteria: {tool_calls_order: [search, pay]}
      - {evaluator: tool-permission, criteria: {deny: [delete]}}
"""

IDLE_SECONDS = 5
"""How long a part of a split trace that has no root waits for it."""
_BATCH_SECONDS = 0.1
_IN_NAMESPACE = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'


class Sending(Protocol):
    """Takes export requests to where they go."""

    async def send(self, body: bytes) -> Answer:
        """Send the serialised request `body`."""
        ...


@dataclass
class Traffic:
    """Traces of one run each: three searches and a payment, spread over the run; the agent's span comes last.

    Every fifth run pays twice and every seventh deletes, and fails for it. The spans of a trace go to the
    Collectors in turn.
    """

    seconds: float
    sent: dict[int, list[RawSpan]] = field(default_factory=dict)
    started: dict[int, float] = field(default_factory=dict)

    async def send(self, collectors: Sequence[Sending], rate: float, until: asyncio.Event) -> None:
        """Begin `rate` traces a second until `until` is set; return when the last one has ended."""
        begin = time.time()
        due: list[tuple[float, int, RawSpan]] = []
        number = 0
        while due or not until.is_set():
            now = time.time()
            while not until.is_set() and begin + number / rate <= now:
                number += 1
                started = begin + number / rate
                trace = self.trace(number, started)
                self.started[number] = started
                self.sent[number] = trace
                due += [(_end(span) / 1e9, position, span) for position, span in enumerate(trace)]
            ready = [entry for entry in due if entry[0] <= now]
            due = [entry for entry in due if entry[0] > now]
            await asyncio.gather(
                *(
                    self._export(collector, [span for _, position, span in ready if position % 2 == index])
                    for index, collector in enumerate(collectors)
                )
            )
            await asyncio.sleep(_BATCH_SECONDS)

    async def _export(self, collector: Sending, spans: list[RawSpan]) -> None:
        if spans:
            answer = await collector.send(join_spans(spans))
            assert "OK" == answer.code, answer

    def trace(self, number: int, started: float) -> list[RawSpan]:
        """The spans of a run that began then."""
        start = int(started * 1000)
        length = int(self.seconds * 1000)
        names = ["search", "search", "search", "delete" if number % 7 == 0 else "look", "pay"]
        if number % 5 == 0:
            names.append("pay")
        spans = [
            tool(
                position + 2,
                1,
                name,
                at=(
                    start + length * position // len(names) + 1,
                    start + length * (position + 1) // len(names) - 1,
                ),
            )
            for position, name in enumerate(names)
        ]
        spans.append(agent(1, None, "shop", at=(start, start + length)))
        return [
            (span_id, payload.replace(TRACE_ID, trace_id_of(number)), of) for span_id, payload, of in spans
        ]


@dataclass(frozen=True)
class Outcomes:
    """What became of the traces."""

    traces: int
    judged: int
    """Traces with a verdict on every evaluation."""
    undecided: frozenset[int]
    """Traces without a verdict on some evaluation."""
    flips: Sequence[str]
    """Verdicts other than those of the whole trace."""
    undelivered: Counter[int]
    """How many spans of a trace no replica forwarded."""


def outcomes_of(traffic: Traffic, services: Sequence[ServiceProcess]) -> Outcomes:
    """What became of the traces, by the files of all services, those included that were killed."""
    verdicts: dict[int, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    delivered: set[SpanKey] = set()
    for replica in services:
        for run in replica.results():
            evaluations = run["evaluations"]
            assert isinstance(evaluations, list)
            for each in evaluations:
                assert isinstance(each, dict)
                if each["outcome"] in ("pass", "fail"):
                    verdicts[_number(str(run["trace_id"]))][str(each["name"])].add(str(each["outcome"]))
        delivered.update(_deliveries(replica))
    flips, undecided = [], set()
    for number, spans in traffic.sent.items():
        expected = _oracle(services[0].criteria_path, number, spans)
        found = verdicts[number]
        flips += [
            f"trace {number} {name}: {sorted(found[name])}, whole: {outcome}"
            for name, outcome in expected.items()
            if found[name] - {outcome}
        ]
        if any(not found[name] for name in expected):
            undecided.add(number)
    undelivered = Counter(
        number
        for number, spans in traffic.sent.items()
        for span in spans
        if (number, span[0].hex()) not in delivered
    )
    return Outcomes(
        traces=len(traffic.sent),
        judged=len(traffic.sent) - len(undecided),
        undecided=frozenset(undecided),
        flips=flips,
        undelivered=undelivered,
    )


def _oracle(criteria_path: Path, number: int, spans: Sequence[RawSpan]) -> dict[str, str]:
    """The verdicts of the whole trace."""
    criteria = load_criteria([criteria_path], environment={})
    (run,) = reconstruct(spans, trace_id=trace_id_of(number), reason=FinishReason.ROOT)
    results = evaluate_run(run, criteria.evaluations_for(run.agent.name))
    return {result.name: result.outcome.value for result in results}


class BalancedReplicas:
    """A name server, two Collectors that balance by trace id, and replicas that tests start and stop.

    Args:
        folder: For files of all parts.
        interval: `cluster.resolver_interval`; the Collectors ask twice as often.
        watched: Whether the replicas watch each other at all.
        listed: The replicas that the Collectors have in a list, in place of asking for a name.
    """

    def __init__(
        self, folder: Path, *, interval: float, watched: bool = True, listed: Sequence[int] = ()
    ) -> None:
        if os.geteuid() or not shutil.which("unshare"):
            pytest.skip("name resolution of its own takes root and unshare")
        self.folder = folder
        self.interval = interval
        self.watched = watched
        self.listed = listed
        self.port = free_port()
        host = f"127.{random.randint(64, 191)}.{random.randint(1, 254)}"  # port 53 may be in use elsewhere
        self._host = host
        self.names = NameServer(NAME, [], host=f"{host}.53", port=53)
        resolver = folder / "resolv.conf"
        resolver.write_text(f"nameserver {host}.53\noptions timeout:1 attempts:1\n")
        self._within = (
            *("unshare", "--mount", "--propagation=private"),
            *("sh", "-c", _IN_NAMESPACE, str(resolver)),
        )
        self.replicas: dict[int, ServiceProcess] = {}
        self._folders: list[ServiceProcess] = []
        self.senders: list[GrpcSender] = []
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        try:
            await self._stack.enter_async_context(self.names)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for replica in self.replicas.values():
            if replica.process.returncode is None:
                replica.process.kill()
            await replica.wait()
        await self._stack.aclose()

    async def start_collectors(self) -> None:
        """Start both Collectors; some replica must be there to be found."""
        for index in range(2):
            endpoint = f"127.0.0.1:{free_port()}"
            collector = OtelCollector(
                self.folder,
                f"collector-{index}",
                self._collector_config(endpoint),
                endpoint,
                within=self._within,
                environment={"GODEBUG": "netdns=go"},
            )
            await self._stack.enter_async_context(collector)
            self.senders.append(await self._stack.enter_async_context(GrpcSender(endpoint)))

    async def start(self, number: int) -> ServiceProcess:
        """Start a replica, or start it again; its address is told before it is ready."""
        address = self.address(number)
        if address not in self.names.addresses:
            self.names.addresses = [*self.names.addresses, address]
        folder = self.folder / f"replica-{number}-{len(self._folders)}"
        folder.mkdir()
        settings: JsonObject = {
            "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": f"{address}:{self.port}"}}}},
            "service": {"telemetry": {"endpoint": f"{address}:0"}},
            "processors": {
                "group_by_trace": {
                    "root_grace": "1s",
                    "incomplete_grace": "1s",
                    "idle_timeout": f"{IDLE_SECONDS}s",
                }
            },
        }
        if self.listed:
            settings["cluster"] = {"peers": self._list()}
        elif self.watched:
            interval = f"{int(self.interval * 1000)}ms"
            settings["cluster"] = {"peers_dns": NAME, "resolver_interval": interval, "name_ttl": "500ms"}
        replica = ServiceProcess(folder, settings, CRITERIA, within=self._within)
        await replica.start()
        self.replicas[number] = replica
        self._folders.append(replica)
        return replica

    async def kill(self, number: int) -> None:
        """kill -9; its address stays."""
        replica = self.replicas[number]
        replica.signal(signal.SIGKILL)
        await replica.wait()

    async def drain(self, number: int) -> None:
        """Take its address away, give the Collectors time to hear of it, and let it end."""
        address = self.address(number)
        self.names.addresses = [each for each in self.names.addresses if each != address]
        await asyncio.sleep(self.interval)
        assert 0 == await self.replicas.pop(number).stop()

    def address(self, number: int) -> str:
        return f"{self._host}.{100 + number}"

    async def metrics(self) -> dict[str, float]:
        """The sum over all replicas that run."""
        total: dict[str, float] = defaultdict(float)
        for replica in self.replicas.values():
            for sample, value in (await replica.metrics()).items():
                total[sample] += value
        return total

    async def stop(self) -> None:
        """Let every replica end as it should."""
        for number in list(self.replicas):
            assert 0 == await self.replicas.pop(number).stop()

    def verdict_delays(self) -> list[float]:
        """How many seconds after the end of a run it was graded, for all runs."""
        return sorted(
            _seconds(run["graded_time"]) - _seconds(run["end_time"])
            for replica in self._folders
            for run in replica.results()
        )

    def deliveries(self) -> list[SpanKey]:
        """Trace and span of everything that was forwarded, each as often as it was."""
        return [key for replica in self._folders for key in _deliveries(replica)]

    def outcomes(self, traffic: Traffic) -> Outcomes:
        """What all replicas that ever ran made of the traffic, compared with whole traces graded at once."""
        return outcomes_of(traffic, self._folders)

    def _list(self) -> JsonValue:
        return [f"{self.address(each)}:{self.port}" for each in self.listed]

    def _collector_config(self, endpoint: str) -> JsonObject:
        by_name: JsonObject = {
            "dns": {
                "hostname": NAME,
                "port": str(self.port),
                "interval": f"{int(self.interval * 500)}ms",
                "timeout": "500ms",
            }
        }
        by_list: JsonObject = {"static": {"hostnames": self._list()}}
        return {
            "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": endpoint}}}},
            "exporters": {
                "loadbalancing": {
                    "routing_key": "traceID",
                    "resolver": by_list if self.listed else by_name,
                    "protocol": {
                        "otlp": {
                            "tls": {"insecure": True},
                            "timeout": "5s",
                            "retry_on_failure": {
                                "initial_interval": "200ms",
                                "max_interval": "1s",
                                "max_elapsed_time": "0s",
                            },
                            "sending_queue": {"num_consumers": 4, "queue_size": 2000},
                        }
                    },
                }
            },
            "service": {
                "telemetry": {"metrics": {"level": "none"}},
                "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["loadbalancing"]}},
            },
        }


def trace_id_of(number: int) -> bytes:
    return random.Random(number).randbytes(12) + number.to_bytes(4, "big")


def _number(trace_id: str) -> int:
    return int(trace_id[-8:], 16)


def _seconds(time_text: JsonValue) -> float:
    return datetime.fromisoformat(str(time_text)).timestamp()


def _end(span: RawSpan) -> int:
    return read_span_head(span[1])[3]


def _deliveries(replica: ServiceProcess) -> list[SpanKey]:
    """Trace and span id of everything that the replica forwarded."""
    return [
        (_number(span["traceId"]), span["spanId"])
        for request in replica.exported_requests()
        for resource in cast("Any", request)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
