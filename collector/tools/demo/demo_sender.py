"""The runs of the demonstration, sent as any agent's are: by the stock OpenTelemetry SDK."""

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from collector.tools.demo.demo_agent import SERVICE_NAME, perform, scripted_runs


def send_scripted_runs(endpoint: str) -> None:
    """Play all of them against the OTLP/gRPC listener at `host:port`, without TLS, until they are sent."""
    provider = TracerProvider(
        resource=Resource.create({"service.name": SERVICE_NAME}), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, insecure=True)))
    tracer = provider.get_tracer(SERVICE_NAME)
    for run in scripted_runs():
        perform(run, tracer)
    provider.shutdown()
