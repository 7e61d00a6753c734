"""From the exporters of the configuration to the fan-out: which queues there are, and what each takes."""

from collections.abc import Mapping

from pydantic import BaseModel

from collector.exporters.discarding_queue import DiscardingQueue
from collector.exporters.discovery import exporter_types
from collector.exporters.exporter import ExporterContext, ResultExporter, SpanExporter
from collector.exporters.fan_out import FanOut, SpanQueue
from collector.exporters.queue_counts import ResultCounts, ResultForm
from collector.exporters.sending_queue import SendingQueue
from collector.exporters.shared_exporter import SharedExporter
from collector.exporters.span_exporter_config import SpanExporterConfig
from collector.memory_limiter import MemoryLimiter
from collector.results_config import ResultsConfig


def build_fan_out(
    configs: Mapping[str, BaseModel],
    results: ResultsConfig,
    context: ExporterContext,
    limiter: MemoryLimiter,
    *,
    end_of_spans: str,
) -> FanOut:
    """The fan-out to all exporters in `configs`.

    Where no exporter gets spans (there is none, or `results.mode` is `verdicts_only`), the spans end at the
    first exporter of results, which counts them as forwarded, or at `end_of_spans` without such an exporter.
    """
    queues: list[SpanQueue] = []
    log_queues: list[SendingQueue] = []
    evaluation_span_queues: list[SendingQueue] = []
    result_exporters: list[ResultExporter] = []

    def result_queue(exporter: SpanExporter, config: SpanExporterConfig, form: ResultForm) -> SendingQueue:
        counts = ResultCounts(context.metrics, exporter.name, form)
        return SendingQueue(
            exporter, config.for_results(), metrics=context.metrics, clock=context.clock, counts=counts
        )

    for name, config in configs.items():
        component = exporter_types()[name.partition("/")[0]]
        if component.kind == "results":
            result_exporters.append(component.create(name, config, context))
        elif isinstance(config, SpanExporterConfig):
            shared = SharedExporter(component.create(name, config, context))
            if receives_spans(config, results):
                queue = SendingQueue(shared.for_spans(), config, metrics=context.metrics, clock=context.clock)
                queues.append(queue)
            if receives_log_records(config, results):
                log_queues.append(result_queue(shared.for_logs(), config, "log"))
            if receives_evaluation_spans(config, results):
                evaluation_span_queues.append(result_queue(shared.for_spans(), config, "span"))
    if not queues:
        name = result_exporters[0].name if result_exporters else end_of_spans
        queues.append(DiscardingQueue(name, context.metrics))
    return FanOut(
        queues,
        result_exporters,
        limiter,
        log_queues=log_queues,
        evaluation_span_queues=evaluation_span_queues,
    )


def receives_spans(config: SpanExporterConfig, results: ResultsConfig) -> bool:
    """Whether received spans are forwarded to the exporter."""
    return results.mode != "verdicts_only" and config.takes_spans


def receives_log_records(config: SpanExporterConfig, results: ResultsConfig) -> bool:
    """Whether results go to the exporter as log records."""
    return "log" in results.emit and config.takes_log_records


def receives_evaluation_spans(config: SpanExporterConfig, results: ResultsConfig) -> bool:
    """Whether results go to the exporter as spans of their own."""
    return "span" in results.emit and config.takes_spans
