"""From the exporters of the configuration to the fan-out: its queues, and what each accepts."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TypeAlias, get_args

from pydantic import BaseModel

from collector import exporters as _this_folder
from collector.component_discovery import find_components
from collector.exporters.counts import ExportCounts, QueueContent
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
from collector.exporters.sink import exporter_sink
from collector.exporters.span_exporter_config import SpanExporterConfig
from collector.memory_limiter import MemoryLimiter
from collector.results_config import ResultsConfig
from collector.trace import Signal


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
    result_exporters: list[ResultExporter] = []
    exporters: list[SpanExporter] = []
    queues: dict[QueueContent, list[SpanQueue]] = {}

    def queue(
        exporter: SpanExporter, config: SpanExporterConfig | ScoreExporterConfig, content: QueueContent
    ) -> SendingQueue:
        kinds: Mapping[QueueContent, DeadLetterKind] = {"traces": "spans", "span": "results"}
        sink = exporter_sink(exporter, "traces" if content in kinds else "logs")
        # Log records and spans of verdicts share the exporter with what was received: one request at a time.
        shares = content in ("log", "span")
        return SendingQueue(
            sink,
            config.sending_queue.one_at_a_time() if shares else config.sending_queue,
            config.retry_on_failure,
            is_required=content in get_args(Signal) and getattr(config, "delivery", "") == "required",
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
        if isinstance(config, SpanExporterConfig | ScoreExporterConfig):
            for content in contents_of(config, results):
                queues.setdefault(content, []).append(queue(exporter, config, content))
    end = result_exporters[0].name if result_exporters else end_of_spans
    for signal in get_args(Signal):
        if signal not in queues:
            queues[signal] = [DiscardingQueue(end, context.metrics, signal)]
    if store is not None:
        result_exporters.append(store)
    return FanOut(
        queues,
        result_exporters,
        limiter,
        exporters=exporters,
        dead_letters=dead_letters,
        emits_records="log" in results.emit,
    )


def contents_of(config: BaseModel, results: ResultsConfig) -> Sequence[QueueContent]:
    """What goes to an exporter, each in a queue of its own; nothing to one of graded runs.

    Of results these are all log records, or those that have no span to be written on.
    """
    if isinstance(config, ScoreExporterConfig):
        return ("score",)
    if not isinstance(config, SpanExporterConfig):
        return ()
    contents: list[QueueContent] = [
        signal for signal in get_args(Signal) if signal in config.accepts and results.mode != "verdicts_only"
    ]
    if "logs" in config.accepts and not {"log", "span_event"}.isdisjoint(results.emit):
        contents.append("log")
    if "traces" in config.accepts and "span" in results.emit:
        contents.append("span")
    return contents


ComponentType: TypeAlias = SpanExporterType[BaseModel] | ResultExporterType[BaseModel]
"""Any of them; `kind` distinguishes them."""


@cache
def exporter_types() -> Mapping[str, ComponentType]:
    """All exporter types by the name that configuration uses, in the order of their names.

    Raises:
        TypeError: a `COMPONENT` is something else, or two modules claim one type name.
    """
    return find_components(_this_folder, (SpanExporterType, ResultExporterType))
