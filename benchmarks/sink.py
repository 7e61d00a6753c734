"""The backend of every measurement: a gRPC server that counts what is forwarded to it.

`python -m benchmarks.sink` announces its port on stderr and answers every line on stdin with the counts
so far as JSON; it ends with its stdin.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from threading import Lock

import grpc

from benchmarks.span_bytes import span_payloads

EXPORT_METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

_RESULT_EVENT = b"\x12\x18gen_ai.evaluation.result"
"""The name field of an evaluation event, so that no other text is counted."""
_IDS_LENGTH = 28  # trace id and span id stand first in a span, with their tags and lengths


@dataclass(slots=True)
class SinkCounts:
    """What arrived: requests, their bytes, spans, spans with different ids, evaluation events."""

    requests: int = 0
    bytes: int = 0
    spans: int = 0
    distinct_spans: int = 0
    result_events: int = 0


class _Sink:
    def __init__(self) -> None:
        self.counts = SinkCounts()
        self._seen: set[bytes] = set()
        self._lock = Lock()

    def export(self, body: bytes, context: object) -> bytes:
        spans = span_payloads(body)
        events = body.count(_RESULT_EVENT)
        with self._lock:
            counts = self.counts
            counts.requests += 1
            counts.bytes += len(body)
            counts.spans += len(spans)
            counts.result_events += events
            self._seen.update([span[:_IDS_LENGTH] for span in spans])
            counts.distinct_spans = len(self._seen)
        return b""


def main() -> None:
    """Serve until stdin ends."""
    sink = _Sink()
    server = grpc.server(
        ThreadPoolExecutor(4),
        options=[("grpc.max_receive_message_length", -1), ("grpc.so_reuseport", 0)],
    )
    service, method = EXPORT_METHOD.strip("/").split("/")
    handler = grpc.unary_unary_rpc_method_handler(sink.export)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"sink ready: grpc=127.0.0.1:{port}", file=sys.stderr, flush=True)
    for _ in sys.stdin:
        print(json.dumps(asdict(sink.counts)), flush=True)
    server.stop(None).wait()


if __name__ == "__main__":
    main()
