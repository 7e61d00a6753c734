"""From the exporters of the configuration to the fan-out: its queues, and what each accepts."""

from collections.abc import Mapping
from functools import cache
from typing import TypeAlias

from pydantic import BaseModel

from collector import exporters as _this_folder
from collector.component_discovery import find_components
from collector.exporters.counts import ExportCounts, QueueContent, ResultForm
from collector.exporters.dead_letters import DeadLetterKind, DeadLetters
from collector.exporters.delivery import SpanQueue
from collector.exporters.exporter import (
    ExporterContext,
    ResultExporter,
    ResultExporterType,
    SpanExporter,
    SpanExporterType,
)
from collector.exporters.fan_out import DiscardingQueue, FanOut
from collector.exporters.score_exporter import ScoreExporterConfig
from collector.exporters.sending_queue import SendingQueue
from collector.exporters.sink import Sink, exporter_sink
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
    dead_letters: DeadLetters | None = None,
    store: ResultExporter | None = None,
) -> FanOut:
    """The fan-out to all exporters in `configs`, with a sending queue for each signal of an exporter.

    Where no exporter gets spans (there is none, or `results.mode` is `verdicts_only`), the spans end at the
    first exporter of results, which counts them as forwarded, or at `end_of_spans` without such an exporter;
    so do received log records.
    `store` gets results in addition to the exporters.
    """
    queues: list[SpanQueue] = []
    record_queues: list[SpanQueue] = []
    result_queues: dict[ResultForm, list[SendingQueue]] = {"log": [], "span": [], "score": []}
    result_exporters: list[ResultExporter] = []
    exporters: list[SpanExporter] = []

    def queue(
        sink: Sink, config: SpanExporterConfig | ScoreExporterConfig, content: QueueContent
    ) -> SendingQueue:
        kinds: Mapping[QueueContent, DeadLetterKind] = {"traces": "spans", "span": "results"}
        # Log records and spans of verdicts share the exporter with what was received: one request at a time.
        shares = content in ("log", "span")
        return SendingQueue(
            sink,
            config.sending_queue.one_at_a_time() if shares else config.sending_queue,
            config.retry_on_failure,
            is_required=content in ("traces", "logs") and getattr(config, "delivery", "") == "required",
            counts=ExportCounts(context.metrics, sink.name, content),
            clock=context.clock,
            dead_letters=None
            if dead_letters is None
            else dead_letters.box(sink.name, kinds.get(content, "log_records")),
        )

    for name, config in configs.items():
        component = exporter_types()[name.partition("/")[0]]
        if component.kind == "results":
            result_exporters.append(component.create(name, config, context))
            continue
        exporter = component.create(name, config, context)
        exporters.append(exporter)
        if isinstance(config, ScoreExporterConfig):
            result_queues["score"].append(queue(exporter_sink(exporter, "logs"), config, "score"))
        elif isinstance(config, SpanExporterConfig):
            if receives_spans(config, results):
                queues.append(queue(exporter_sink(exporter), config, "traces"))
            if forwards_log_records(config, results):
                record_queues.append(queue(exporter_sink(exporter, "logs"), config, "logs"))
            if receives_log_records(config, results):
                result_queues["log"].append(queue(exporter_sink(exporter, "logs"), config, "log"))
            if receives_evaluation_spans(config, results):
                result_queues["span"].append(queue(exporter_sink(exporter), config, "span"))
    end = result_exporters[0].name if result_exporters else end_of_spans
    if not queues:
        queues.append(DiscardingQueue(end, context.metrics))
    if not record_queues:
        record_queues.append(DiscardingQueue(end, context.metrics, "logs"))
    if store is not None:
        result_exporters.append(store)
    return FanOut(
        queues,
        result_exporters,
        limiter,
        record_queues=record_queues,
        result_queues=result_queues,
        exporters=exporters,
        dead_letters=dead_letters,
        emits_records="log" in results.emit,
    )


def receives_spans(config: SpanExporterConfig, results: ResultsConfig) -> bool:
    """Whether received spans are forwarded to the exporter."""
    return results.mode != "verdicts_only" and "traces" in config.accepts


def forwards_log_records(config: SpanExporterConfig, results: ResultsConfig) -> bool:
    """Whether received log records are forwarded to the exporter."""
    return results.mode != "verdicts_only" and "logs" in config.accepts


def receives_log_records(config: SpanExporterConfig, results: ResultsConfig) -> bool:
    """Whether results go to the exporter as log records: all, or those that have no span to be written on."""
    return not {"log", "span_event"}.isdisjoint(results.emit) and "logs" in config.accepts


def receives_evaluation_spans(config: SpanExporterConfig, results: ResultsConfig) -> bool:
    """Whether results go to the exporter as spans of their own."""
    return "span" in results.emit and "traces" in config.accepts


def receives_scores(config: BaseModel) -> bool:
    """Whether results go to the exporter as scores."""
    return isinstance(config, ScoreExporterConfig)


ComponentType: TypeAlias = SpanExporterType[BaseModel] | ResultExporterType[BaseModel]
"""Any of them; `kind` distinguishes them."""


@cache
def exporter_types() -> Mapping[str, ComponentType]:
    """All exporter types by the name that configuration uses, in the order of their names.

    Raises:
        TypeError: a `COMPONENT` is something else, or two modules claim one type name.
    """
    return find_components(_this_folder, (SpanExporterType, ResultExporterType))
