"""Sends one request of spans with the stock OTLP/gRPC exporter for Python, set up by its environment."""

import sys

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

count = int(sys.argv[1])
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), max_export_batch_size=count))
for _ in range(count):
    with provider.get_tracer("test").start_as_current_span("span", attributes={"text": "x" * 1000}):
        pass
provider.shutdown()
