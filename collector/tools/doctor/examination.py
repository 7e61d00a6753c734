"""All hops of a configuration, in the order of a trace's way."""

import asyncio
from collections.abc import Iterator

from collector.clock import Clock
from collector.configuration import ServiceConfig
from collector.framework_pages import content_settings
from collector.tools.doctor.backends import exporter_hops, kafka_hop
from collector.tools.doctor.hop import Hop
from collector.tools.doctor.listeners import ListenerTrial, Sender
from collector.tools.doctor.places import place_hops
from collector.tools.doctor.prometheus import prometheus_hops
from collector.tools.http_client import NoAnswerError
from collector.tools.prometheus_api import PrometheusApi
from collector.tools.running_service import RunningService, Samples

_MOST_SKEW_SECONDS = 2.0
_NEARLY = 0.95
_MOST_NAMES, _MOST_SETTINGS = 10, 5


async def examine(
    config: ServiceConfig, *, clock: Clock, sender: Sender, prometheus: PrometheusApi | None = None
) -> list[Hop]:
    """The state of every hop; nothing is raised for a hop that does not work."""
    service = RunningService(config.telemetry_endpoint())
    hops, samples = await asyncio.to_thread(_telemetry_hops, service, clock)
    hops += await ListenerTrial(config, sender, None if samples is None else service, clock).hops()
    if (kafka := config.receivers.kafka) is not None:
        hops.append(await asyncio.to_thread(kafka_hop, "receivers.kafka", kafka))
    if samples is not None:
        hops += [_agents_hop(samples), *_content_hops(samples), _limits_hop(samples), *_store_hops(samples)]
    hops += await asyncio.to_thread(lambda: list(place_hops(config)))
    hops += await exporter_hops(config, clock)
    if prometheus is not None:
        hops += await asyncio.to_thread(lambda: list(prometheus_hops(prometheus, service)))
    return hops


def _telemetry_hops(service: RunningService, clock: Clock) -> tuple[list[Hop], Samples | None]:
    """Whether the service runs and how its clock differs; its series, None where it gives none."""
    where = f"service.telemetry ({service.address})"
    try:
        problems = service.problems_with_readiness()
        before = clock.unix_nano()
        probe = service.expect_probe()
        now = (before + clock.unix_nano()) / 2e9
        samples = service.samples()
    except NoAnswerError as error:
        advice = "Start it: tracegrade run --config FILE. If it runs elsewhere, run this there."
        return [Hop(where, str(error), "a service that runs with this configuration", advice)], None
    ready = Hop(where, "the service runs and is ready")
    if problems:
        ready = Hop(where, problems, "a service that is ready", "Repair what it names.")
    return [ready, _clock_hop(now, probe.get("unix_nano"))], samples


def _clock_hop(now: float, unix_nano: object) -> Hop:
    skew = now - unix_nano / 1e9 if isinstance(unix_nano, int) else 0.0
    if abs(skew) <= _MOST_SKEW_SECONDS:
        return Hop("clock", f"{abs(skew):.1f} s from that of the service")
    return Hop(
        "clock",
        f"the clock of this machine is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} that of the "
        "service",
        f"at most {_MOST_SKEW_SECONDS:g} s between them",
        "Let both follow NTP: spans carry the sender's time, and old ones are graded as backfill.",
    )


def _agents_hop(samples: Samples) -> Hop:
    """Whether criteria apply to the agents that send."""
    series = samples.get("tracegrade_agents_without_criteria", ())
    names = sorted({labels["gen_ai_agent_name"] for labels, value in series if value})
    if not names:
        return Hop("agents", "criteria apply to every agent that sent a trace")
    shown = ", ".join(f'"{name}"' for name in names[:_MOST_NAMES])
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return Hop(
        "agents",
        f"no evaluation applies to {shown}{more}",
        "criteria for every agent that sends",
        "Name them in a criteria file as they send their name, in its case, or add builtin to "
        "processors.evaluation.criteria; docs/agents-and-patterns.md says where the name is from.",
    )


def _content_hops(samples: Samples) -> Iterator[Hop]:
    """For each dialect in which agents send without content that evaluations need: how it is sent."""
    by_dialect: dict[str, list[str]] = {}
    for labels, value in samples.get("tracegrade_agents_without_content", ()):
        if value:
            by_dialect.setdefault(labels["dialect"], []).append(f'"{labels["gen_ai_agent_name"]}"')
    for dialect, names in sorted(by_dialect.items()):
        settings = content_settings().get(dialect, ())
        advice = " ".join(f"{frameworks}: {setting}." for frameworks, setting in settings[:_MOST_SETTINGS])
        if len(settings) > _MOST_SETTINGS or not settings:
            advice = f"{advice} docs/frameworks.md has the setting of each framework.".lstrip()
        yield Hop(
            f"content ({dialect})",
            f"evaluations of {', '.join(sorted(names)[:_MOST_NAMES])} lack content that was not captured",
            "messages, arguments and results on spans or in log records that are sent here too",
            advice,
        )


def _store_hops(samples: Samples) -> Iterator[Hop]:
    """Whether the service, if it has a store, stored every run since its start."""
    stored = sum(
        value
        for labels, value in samples.get("tracegrade_store_runs_total", ())
        if labels["outcome"] == "written"
    )
    dropped = {
        labels["reason"]: value
        for labels, value in samples.get("tracegrade_results_dropped_total", ())
        if labels["exporter"] == "store" and value
    }
    if not dropped:
        return
    reasons = ", ".join(f"{value:.0f} {reason}" for reason, value in sorted(dropped.items()))
    yield Hop(
        "store",
        f"{stored:.0f} runs were stored since the start, {sum(dropped.values()):.0f} were not ({reasons})",
        "every run in the store",
        "queue_full: raise store.max_cpu. too_large: raise store.max_mib, or redact results. disk: see the "
        "log.",
    )


def _limits_hop(samples: Samples) -> Hop:
    """Whether the service holds nearly all that it may."""
    where = "processors.memory_limiter"
    held, limit = (
        sum(value for _, value in samples.get(f"tracegrade_{name}", ()))
        for name in ("held_bytes", "held_limit_bytes")
    )
    share = held / limit if limit else 0.0
    if share <= _NEARLY:
        return Hop(where, f"{share:.0%} of the limit is held")
    queues = {labels.get("exporter"): value for labels, value in samples.get("tracegrade_queue_bytes", ())}
    fullest = max(queues, key=lambda name: queues[name], default=None)
    waits = f", most of it waits for {fullest}" if fullest and queues[fullest] else ""
    return Hop(
        where,
        f"{share:.0%} of the limit is held{waits}: senders are refused",
        f"less than {_NEARLY:.0%}",
        "Repair the exporter that does not deliver; otherwise raise limit_mib or add a replica "
        "(docs/scaling.md).",
    )
