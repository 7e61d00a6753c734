"""The service's own spans: one for each evaluated trace that is sampled. Off unless configured."""

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpanExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased

from collector.clock import Clock
from collector.telemetry.otlp_destination import (
    finish_by,
    grpc_target,
    header_values,
    http_url,
    own_resource,
)
from collector.telemetry.telemetry_config import OtlpConfig


class OwnTraces:
    """Sends `evaluate trace` spans over OTLP, from a thread of its own.

    What the destination does not take is dropped there: it never holds up or fails the service.
    """

    def __init__(
        self, otlp: OtlpConfig, sampling_ratio: float, *, version: str, instance: str, clock: Clock
    ) -> None:
        self._clock = clock
        # shutdown_on_exit would wait for the destination after the service's own deadline.
        self._provider = TracerProvider(
            sampler=TraceIdRatioBased(sampling_ratio),
            resource=own_resource(version, instance),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(BatchSpanProcessor(_exporter(otlp)))
        self._tracer = self._provider.get_tracer("tracegrade", version)

    def trace_evaluated(
        self, *, spans: int, runs: int, reason: str, start_unix_nano: int, end_unix_nano: int
    ) -> None:
        """State that a trace with so many spans was rebuilt into so many runs and graded.

        Args:
            spans: Spans of the trace.
            runs: Agent runs found in it.
            reason: Its finish reason.
            start_unix_nano: When grading began.
            end_unix_nano: When it was done.
        """
        span = self._tracer.start_span("evaluate trace", context=Context(), start_time=start_unix_nano)
        if span.is_recording():
            span.set_attribute("tracegrade.spans", spans)
            span.set_attribute("tracegrade.runs", runs)
            span.set_attribute("tracegrade.finish_reason", reason)
        span.end(end_time=end_unix_nano)

    async def shutdown(self, deadline: float) -> None:
        """Send what is left, until `deadline` on the clock's monotonic time. Safe twice."""
        await finish_by(deadline, self._clock, self._provider.shutdown)


def _exporter(otlp: OtlpConfig) -> SpanExporter:
    if otlp.protocol == "grpc":
        target, is_insecure = grpc_target(otlp)
        return GrpcSpanExporter(endpoint=target, insecure=is_insecure, headers=header_values(otlp))
    return HttpSpanExporter(endpoint=http_url(otlp, "/v1/traces"), headers=header_values(otlp))
