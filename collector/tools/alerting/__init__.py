"""Recording and alert rules from objectives and criteria."""

from collector.tools.alerting.objectives import (
    BaselinesFile,
    ModelT,
    ObjectivesFile,
    PinnedScore,
    Volume,
    VolumeFile,
    criteria_coverage,
    objective_problems,
    read_data_file,
)
from collector.tools.alerting.rules import (
    DASHBOARD_BASE,
    RUNBOOK_BASE,
    RuleInputs,
    never_firing,
    rules_text,
)
from collector.tools.alerting.selectors import quoted
from collector.tools.alerting.windows import TimeScale, volume_on_server

__all__ = [
    "DASHBOARD_BASE", "RUNBOOK_BASE", "BaselinesFile", "ModelT", "ObjectivesFile",
    "PinnedScore", "RuleInputs", "TimeScale", "Volume", "VolumeFile", "criteria_coverage", "never_firing",
    "objective_problems", "quoted", "read_data_file", "rules_text", "volume_on_server",
]  # fmt: skip
