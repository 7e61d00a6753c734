"""The input of every measurement: export requests of instrumented agent processes, as bytes.

Each process runs several agents at once and exports its finished spans in the order of their ends, in
batches of one shape, encoded by the OpenTelemetry SDK. Sending all requests of a process once is a pass;
every pass gets trace ids of its own, so that no server can know a trace already.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan

from benchmarks.agent_trace import AGENT_NAME, SPANS_PER_TRACE, agent_trace

AGENTS_AT_ONCE = 3
"""Agents that one process runs side by side."""

DISTINCT_PROCESSES = 4
"""Processes whose content differs; further connections repeat them under other trace ids."""

_PASS_LENGTH = 4
_UNSET_PASS = bytes.fromhex("f5a19e0d")
_TRACE_ID = re.compile(rb"\n\x10" + re.escape(_UNSET_PASS))
_AGENT_NAME = re.compile(AGENT_NAME.encode())


@dataclass(frozen=True, slots=True)
class Shape:
    """How many spans a request holds, and how many traces make one pass of one process."""

    name: str
    smallest_request: int
    largest_request: int
    traces: int

    @property
    def spans(self) -> int:
        """Spans in one pass of one process."""
        return self.traces * SPANS_PER_TRACE


SHAPES = (Shape("512", 512, 512, 118), Shape("50", 50, 50, 50), Shape("1-5", 1, 5, 20))
"""Passes of 512 and 50 fill their requests but for the last; a small pass keeps slow peers in bounds."""


@dataclass(frozen=True, slots=True)
class TemplateRequest:
    """A serialised ExportTraceServiceRequest whose trace ids are completed for every pass.

    `name_positions` says where the agent's name stands: twice in every root span.
    """

    body: bytes
    id_positions: Sequence[int]
    name_positions: Sequence[int] = ()

    @property
    def spans(self) -> int:
        """Spans in the request."""
        return len(self.id_positions)

    def for_pass(self, number: int) -> bytes:
        """The request with the trace ids of pass `number` (0 to 2**32 - 1)."""
        pass_bytes = number.to_bytes(_PASS_LENGTH, "big")
        body = bytearray(self.body)
        for position in self.id_positions:
            body[position : position + _PASS_LENGTH] = pass_bytes
        return bytes(body)

    def with_agents(self, first: int, count: int) -> "TemplateRequest":
        """The request with a different agent for every run: numbers `first` and following, modulo `count`."""
        body = bytearray(self.body)
        for ordinal, position in enumerate(self.name_positions):
            name = agent_name((first + ordinal // 2) % count).encode()
            body[position : position + len(name)] = name
        return TemplateRequest(bytes(body), self.id_positions, self.name_positions)


def agent_name(number: int) -> str:
    """The name of an agent by its number, as long as the name that it takes the place of."""
    return f"agent_{number:0{len(AGENT_NAME) - len('agent_')}d}"


def process_requests(
    process: int, shape: Shape, start_unix_nano: int, *, agents: Sequence[str] = (AGENT_NAME,)
) -> list[TemplateRequest]:
    """One pass of one process in sending order, with runs of `agents` in turn.

    The first of them starts at `start_unix_nano`.
    """
    random = Random(f"process {process}")
    resource = _resource(process, random)
    spans = sorted(
        _spans(process, shape, start_unix_nano, resource, random, agents), key=lambda span: span.end_time or 0
    )
    requests: list[TemplateRequest] = []
    position = 0
    while position < len(spans):
        size = random.randint(shape.smallest_request, shape.largest_request)
        requests.append(_encode(spans[position : position + size]))
        position += size
    return requests


def _spans(
    process: int,
    shape: Shape,
    start_unix_nano: int,
    resource: Resource,
    random: Random,
    agents: Sequence[str],
) -> Iterator[ReadableSpan]:
    # One lane for each agent running at once; a lane starts its next run a while after the last.
    lanes = [start_unix_nano + lane * 400_000_000 for lane in range(AGENTS_AT_ONCE)]
    for index in range(shape.traces):
        lane = index % AGENTS_AT_ONCE
        trace_id = _UNSET_PASS + random.randbytes(16 - _PASS_LENGTH)
        trace = agent_trace(
            f"{process}/{index}",
            trace_id,
            lanes[lane],
            resource,
            variant=index,
            agent=agents[index % len(agents)],
        )
        yield from trace
        lanes[lane] = (trace[-1].end_time or 0) + random.randrange(20_000_000, 300_000_000)


def _encode(spans: Sequence[ReadableSpan]) -> TemplateRequest:
    body = encode_spans(spans).SerializeToString()
    positions = [match.start() + 2 for match in _TRACE_ID.finditer(body)]
    if len(positions) != len(spans):
        raise ValueError(f"found {len(positions)} trace ids in a request of {len(spans)} spans")
    names = [match.start() for match in _AGENT_NAME.finditer(body)]
    return TemplateRequest(body, positions, names)


def _resource(process: int, random: Random) -> Resource:
    return Resource(
        {
            "service.name": "order-support",
            "service.namespace": "shop",
            "service.version": "3.14.0",
            "service.instance.id": f"{random.getrandbits(128):032x}",
            "deployment.environment.name": "production",
            "host.name": f"agents-{process:02d}.shop.example",
            "process.pid": 4000 + process,
            "telemetry.sdk.language": "python",
            "telemetry.sdk.name": "opentelemetry",
            "telemetry.sdk.version": "1.45.2",
        }
    )
