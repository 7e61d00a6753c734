"""Sends verdicts of stored runs to exporters of scores, apart from the data path and its counts."""

import sys
from collections import Counter
from collections.abc import Mapping

from pydantic import BaseModel

from collector.clock import Clock
from collector.errors import ExportError
from collector.exporters.assembly import exporter_types
from collector.exporters.exporter import ExporterContext, SpanExporter
from collector.exporters.redrive import send_patiently
from collector.exporters.score_exporter import ScoreExporterConfig
from collector.telemetry import Metrics

_PATIENCE_SECONDS = 60.0


def score_exporters(configs: Mapping[str, BaseModel]) -> dict[str, ScoreExporterConfig]:
    """Those of the configured exporters that send scores."""
    return {name: config for name, config in configs.items() if isinstance(config, ScoreExporterConfig)}


class ScoreSender:
    """Sends requests to exporters of its own with these settings, in any event loop."""

    def __init__(self, configs: Mapping[str, ScoreExporterConfig], clock: Clock) -> None:
        self._clock = clock
        context = ExporterContext(clock=clock, metrics=Metrics(), console=sys.stdout)
        self._exporters: dict[str, SpanExporter] = {}
        for name, config in configs.items():
            component = exporter_types()[name.partition("/")[0]]
            assert component.kind == "scores"
            # What is not there now, days after the runs, will not come.
            settings = config.model_copy(update={"span_wait": 0.0})
            self._exporters[name] = component.create(name, settings, context)
        self.accepted: Counter[str] = Counter(dict.fromkeys(configs, 0))
        """How many verdicts each exporter accepted."""
        self.rejected: Counter[str] = Counter()
        """How many verdicts each did not accept, such as those of spans that its server does not have."""

    async def send(self, request: bytes, count: int) -> None:
        """Send an ExportLogsServiceRequest with `count` verdicts to every exporter.

        Raises:
            ExportError: an exporter did not accept it within a minute; those before it did.
            StartupError: a TLS file of an exporter cannot be read.
        """
        for name, exporter in self._exporters.items():
            await exporter.start()
            try:
                answer = await send_patiently(
                    exporter, request, count, "logs", self._clock, _PATIENCE_SECONDS
                )
            except ExportError as error:
                raise ExportError(f"{name}: {error}") from error
            finally:
                await exporter.shutdown(self._clock.monotonic())
            self.accepted[name] += count - answer.rejected_spans
            self.rejected[name] += answer.rejected_spans
