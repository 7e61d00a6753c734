"""How far each option, exporter, metric, rule and command may be relied on.

A row holds for everything below its name: a part of a path for options, the beginning of the name for metrics
and rules. The longest row counts.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias


class Stability(StrEnum):
    """What a new version may do to something."""

    STABLE = "stable"
    BETA = "beta"
    EXPERIMENTAL = "experimental"


MEANING = {
    Stability.STABLE: "Only a major version changes it, before 1.0 a minor one, as the CHANGELOG explains.",
    Stability.BETA: "It stays. A minor version may change its form, as the CHANGELOG explains.",
    Stability.EXPERIMENTAL: "Any version may change or remove it.",
}


class Level(NamedTuple):
    """The stability of something; for what is experimental, `decision` states when it stays or is removed."""

    stability: Stability
    decision: str = ""

    def __str__(self) -> str:
        return f"{self.stability}: {self.decision}" if self.decision else self.stability.value


Kind: TypeAlias = Literal["option", "metric", "rule", "command"]
"""Exporters are options, `exporters.TYPE`. A rule is an alert or a recorded series, by its name."""

_STABLE, _BETA = Level(Stability.STABLE), Level(Stability.BETA)

LEVELS: Mapping[Kind, Mapping[str, Level]] = {
    "option": {
        "receivers.otlp": _STABLE,
        "receivers.otlp.protocols.grpc.server": Level(
            Stability.EXPERIMENTAL,
            "stays once uvicorn calls its HTTP/2 stable, and is removed with 1.0 if it does not until then",
        ),
        "receivers.kafka": _BETA,
        "processors.memory_limiter": _STABLE,
        "processors.group_by_trace": _STABLE,
        "processors.evaluation": _BETA,
        "processors.evaluation.criteria": _STABLE,
        **dict.fromkeys([f"exporters.{name}" for name in ("debug", "file", "results_file")], _STABLE),
        **dict.fromkeys([f"exporters.{name}" for name in ("otlp", "otlp_http", "prometheus")], _STABLE),
        **dict.fromkeys([f"exporters.{name}" for name in ("kafka", "kafka_results")], _BETA),
        "exporters.langfuse_scores": _BETA,
        "exporters.mlflow_assessments": _BETA,
        "exporters.phoenix_annotations": _BETA,
        "results": _STABLE,
        "results.annotations": _BETA,
        **dict.fromkeys(("journal", "store", "page", "cluster"), _BETA),
        "service.telemetry": _STABLE,
        "service.shutdown_timeout": _STABLE,
        "service.dead_letters": _BETA,
        "objectives": _STABLE,
    },
    "metric": {
        "gen_ai_evaluation_": _STABLE,
        "tracegrade_": _STABLE,
        **dict.fromkeys([f"tracegrade_{name}_" for name in ("cluster", "journal", "kafka", "store")], _BETA),
        "tracegrade_dead_letters": _BETA,
        "tracegrade_early_": _BETA,
        "tracegrade_late_traces_checked": _BETA,
        **dict.fromkeys(("tracegrade_log_records_", "tracegrade_accounting_error_log_records"), _BETA),
        "tracegrade_late_log_records": _BETA,
        "tracegrade_metrics_requests_discarded": _BETA,
        "tracegrade_native_": Level(
            Stability.EXPERIMENTAL,
            "stays with `tracegrade[native]`, which stays if no result differs from Python's until 1.0",
        ),
        "tracegrade_learned_root_grace_seconds": _BETA,
        "tracegrade_reviewed_failures": _BETA,
        "tracegrade_verdicts_contradicted": _BETA,
    },
    "rule": {
        "Agent": _STABLE,
        "Tracegrade": _STABLE,
        **dict.fromkeys([f"Tracegrade{name}" for name in ("Journal", "Kafka", "LogRecords", "Peers")], _BETA),
        **dict.fromkeys(("AgentRunaway", "TracegradeVerdictsContradicted"), _BETA),
        **dict.fromkeys(("agent:", "agent_version:", "job:"), _BETA),
    },
    "command": {
        **dict.fromkeys(("run", "validate", "print-config", "schema", "replay", "health", "demo"), _STABLE),
        **dict.fromkeys(("baseline", "rules", "doctor"), _STABLE),
        **dict.fromkeys(("agents", "runs", "show", "import", "learn", "redrive", "journal"), _BETA),
        **dict.fromkeys(("promote", "mute", "regrade", "reviews"), _BETA),
    },
}


def level_of(kind: Kind, name: str) -> Level | None:
    """The level of what is called `name`, for an option its path; None where no row covers it."""
    rows = LEVELS[kind]
    if kind in ("option", "command"):
        covering = [row for row in rows if f"{name}.".startswith(f"{row}.")]
    else:
        covering = [row for row in rows if name.startswith(row)]
    return rows[max(covering, key=len)] if covering else None
