"""From the exporters of the configuration to the fan-out: which queues there are, and what each takes."""

from collections.abc import Mapping
from functools import cache
from typing import TypeAlias

from pydantic import BaseModel

from collector import exporters as _this_folder
from collector.component_discovery import find_components
from collector.exporters.dead_letters import DeadLetterBox, DeadLetterKind, DeadLetters
from collector.exporters.exporter import (
    ExporterContext,
    ExportResponse,
    LogExporter,
    ResultExporter,
    ResultExporterType,
    SpanExporter,
    SpanExporterType,
)
from collector.exporters.fan_out import DiscardingQueue, FanOut, SpanQueue
from collector.exporters.score_exporter import ScoreExporterConfig
from collector.exporters.sending_queue import ResultCounts, ResultForm, SendingQueue
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
    """The fan-out to all exporters in `configs`.

    Where no exporter gets spans (there is none, or `results.mode` is `verdicts_only`), the spans end at the
    first exporter of results, which counts them as forwarded, or at `end_of_spans` without such an exporter.
    `store` gets results beside the exporters.
    """
    queues: list[SpanQueue] = []
    log_queues: list[SendingQueue] = []
    evaluation_span_queues: list[SendingQueue] = []
    score_queues: list[SendingQueue] = []
    result_exporters: list[ResultExporter] = []

    def box(name: str, kind: DeadLetterKind) -> DeadLetterBox | None:
        return None if dead_letters is None else dead_letters.box(name, kind)

    def result_queue(exporter: SpanExporter, config: SpanExporterConfig, form: ResultForm) -> SendingQueue:
        counts = ResultCounts(context.metrics, exporter.name, form)
        return SendingQueue(
            exporter,
            config,
            metrics=context.metrics,
            clock=context.clock,
            counts=counts,
            dead_letters=box(exporter.name, "results" if form == "span" else "log_records"),
        )

    for name, config in configs.items():
        component = exporter_types()[name.partition("/")[0]]
        if component.kind == "results":
            result_exporters.append(component.create(name, config, context))
        elif isinstance(config, ScoreExporterConfig):
            exporter = component.create(name, config, context)
            score_queues.append(result_queue(exporter, config.for_queue(), "score"))
        elif isinstance(config, SpanExporterConfig):
            shared = SharedExporter(component.create(name, config, context))
            if receives_spans(config, results):
                queue = SendingQueue(
                    shared.for_spans(),
                    config,
                    metrics=context.metrics,
                    clock=context.clock,
                    dead_letters=box(name, "spans"),
                )
                queues.append(queue)
            if receives_log_records(config, results):
                log_queues.append(result_queue(shared.for_logs(), config.for_results(), "log"))
            if receives_evaluation_spans(config, results):
                evaluation_span_queues.append(result_queue(shared.for_spans(), config.for_results(), "span"))
    if not queues:
        name = result_exporters[0].name if result_exporters else end_of_spans
        queues.append(DiscardingQueue(name, context.metrics))
    if store is not None:
        result_exporters.append(store)
    return FanOut(
        queues,
        result_exporters,
        limiter,
        log_queues=log_queues,
        evaluation_span_queues=evaluation_span_queues,
        score_queues=score_queues,
        dead_letters=dead_letters,
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


def receives_scores(config: BaseModel) -> bool:
    """Whether results go to the exporter as scores."""
    return isinstance(config, ScoreExporterConfig)


ComponentType: TypeAlias = SpanExporterType[BaseModel] | ResultExporterType[BaseModel]
"""Any kind; `kind` tells them apart."""


@cache
def exporter_types() -> Mapping[str, ComponentType]:
    """All exporter types by the name that configuration uses, in the order of their names.

    Raises:
        TypeError: a `COMPONENT` is something else, or two modules claim one type name.
    """
    return find_components(_this_folder, (SpanExporterType, ResultExporterType))


class SharedExporter:
    """Opens an exporter with the first of its users, and closes it with the last.

    `for_spans` and `for_logs` make the users; each stands behind a queue of its own and is an exporter.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._users: set[_User] = set()
        self._is_open = False

    def for_spans(self) -> SpanExporter:
        """A user that sends spans."""
        return self._added(_User(self, self._exporter, self._exporter.endpoint))

    def for_logs(self) -> SpanExporter:
        """A user whose requests are log records.

        Raises:
            TypeError: the exporter takes none.
        """
        if not isinstance(self._exporter, LogExporter):
            raise TypeError(f"{self._exporter.name} takes no log records")
        return self._added(_LogUser(self, self._exporter))

    async def open(self) -> None:
        """Start the exporter unless it is started."""
        if not self._is_open:
            await self._exporter.start()
            self._is_open = True

    async def leave(self, user: "_User", deadline: float) -> None:
        """Strike a user; the last one closes the exporter."""
        self._users.discard(user)
        if not self._users:
            await self._exporter.shutdown(deadline)

    def _added(self, user: "_User") -> "_User":
        self._users.add(user)
        return user


class _User:
    """Sends spans; see `SpanExporter`."""

    def __init__(self, shared: SharedExporter, exporter: SpanExporter, endpoint: str) -> None:
        self.name = exporter.name
        self.endpoint = endpoint
        self._shared = shared
        self._exporter = exporter

    async def start(self) -> None:
        await self._shared.open()

    async def export(self, request: bytes, span_count: int) -> ExportResponse:
        return await self._exporter.export(request, span_count)

    async def shutdown(self, deadline: float) -> None:
        await self._shared.leave(self, deadline)


class _LogUser(_User):
    """Sends log records."""

    def __init__(self, shared: SharedExporter, exporter: LogExporter) -> None:
        super().__init__(shared, exporter, exporter.logs_endpoint)
        self._log_exporter = exporter

    async def export(self, request: bytes, span_count: int) -> ExportResponse:
        return await self._log_exporter.export_logs(request, span_count)
