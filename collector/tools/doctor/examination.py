"""All hops of a configuration, in the order of a trace's way."""

import asyncio
from collections.abc import Mapping

from collector.clock import Clock
from collector.configuration import ServiceConfig
from collector.tools.doctor.backends import exporter_hops, kafka_hop
from collector.tools.doctor.criteria import criteria_hops
from collector.tools.doctor.hop import Hop, Trouble, works
from collector.tools.doctor.listeners import ListenerTrial, Sender
from collector.tools.doctor.places import place_hops
from collector.tools.doctor.prometheus import prometheus_hops
from collector.tools.prometheus_api import PrometheusApi
from collector.tools.running_service import NoAnswerError, RunningService, Samples

_MOST_SKEW_SECONDS = 2.0
_NEARLY = 0.95


async def examine(
    config: ServiceConfig,
    *,
    environment: Mapping[str, str],
    clock: Clock,
    sender: Sender,
    prometheus: PrometheusApi | None = None,
) -> list[Hop]:
    """What was found at every hop; nothing is raised for a hop that does not work."""
    service = RunningService(config.telemetry_endpoint())
    telemetry, samples = await asyncio.to_thread(_telemetry_hops, service, clock)
    hops = [*telemetry]
    hops += await ListenerTrial(config, sender, None if samples is None else service, clock).hops()
    if (kafka := config.receivers.kafka) is not None:
        hops.append(await asyncio.to_thread(kafka_hop, "receivers.kafka", kafka, kafka.topic))
    hops += await asyncio.to_thread(criteria_hops, config, environment, samples)
    if samples is not None:
        hops.append(_limits_hop(samples))
    hops += await asyncio.to_thread(lambda: list(place_hops(config)))
    hops += await exporter_hops(config, clock)
    if prometheus is not None:
        hops += await asyncio.to_thread(lambda: list(prometheus_hops(prometheus, service)))
    return hops


def _telemetry_hops(service: RunningService, clock: Clock) -> tuple[list[Hop], Samples | None]:
    """Whether the service runs and what its clock says; its series, None where it gives none."""
    where = f"service.telemetry ({service.address})"
    try:
        problems = service.problems_with_readiness()
        asked = clock.unix_nano()
        told = service.expect_probe()
        now = (asked + clock.unix_nano()) / 2e9
        samples = service.samples()
    except NoAnswerError as error:
        return [
            Trouble(
                str(error),
                "a service that runs with this configuration",
                "Start it: tracegrade run --config FILE. If it runs elsewhere, run this there.",
            ).at(where)
        ], None
    ready = works(where, "the service runs and is ready")
    if problems:
        ready = Trouble(problems, "a service that is ready", "Mend what it names.").at(where)
    return [ready, _clock_hop(now, told.get("unix_nano"))], samples


def _clock_hop(now: float, unix_nano: object) -> Hop:
    skew = now - unix_nano / 1e9 if isinstance(unix_nano, int) else 0.0
    if abs(skew) <= _MOST_SKEW_SECONDS:
        return works("clock", f"{abs(skew):.1f} s from that of the service")
    return Trouble(
        f"the clock of this machine is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} that of the "
        "service",
        f"at most {_MOST_SKEW_SECONDS:g} s between them",
        "Let both follow NTP: spans carry the sender's time, and old ones are graded as backfill.",
    ).at("clock")


def _limits_hop(samples: Samples) -> Hop:
    """Whether the service holds nearly all that it may."""
    where = "processors.memory_limiter"
    held, limit = (
        sum(value for _, value in samples.get(f"tracegrade_{name}", ()))
        for name in ("held_bytes", "held_limit_bytes")
    )
    if limit and held > _NEARLY * limit:
        queues = {
            labels.get("exporter", ""): value for labels, value in samples.get("tracegrade_queue_bytes", ())
        }
        fullest = max(queues, key=lambda name: queues[name], default="")
        waits = f", most of it waits for {fullest}" if fullest and queues[fullest] else ""
        return Trouble(
            f"{held / limit:.0%} of the limit is held{waits}: senders are refused",
            f"less than {_NEARLY:.0%}",
            "Mend the exporter that does not deliver; otherwise raise limit_mib or add a replica "
            "(docs/scaling.md).",
        ).at(where)
    return works(where, f"{held / limit if limit else 0:.0%} of the limit is held")
