"""What every alert says beside its condition: what happened, where to look, what to do."""

from collections.abc import Mapping
from dataclasses import dataclass

RUNBOOK_BASE = "https://github.com/tracegrade/tracegrade/blob/main/docs/runbooks.md"
DASHBOARD_BASE = "http://localhost:3000"

_JOB = "var-job={{ $labels.job | urlquery }}"
_AGENT = "var-agent={{ $labels.gen_ai_agent_name | urlquery }}"
_EVALUATION = "var-evaluation={{ $labels.gen_ai_evaluation_name | urlquery }}"
_VERSION = "var-version={{ $labels.gen_ai_agent_version | urlquery }}"
_INSTANCE = "var-instance={{ $labels.instance | urlquery }}"


@dataclass(frozen=True, slots=True)
class AlertLinks:
    """Where runbooks and dashboards are. Texts may hold Prometheus templates."""

    runbook_base: str = RUNBOOK_BASE
    dashboard_base: str = DASHBOARD_BASE

    def of_evaluation(self, alert: str, summary: str, description: str) -> Mapping[str, str]:
        """Annotations of an alert about one evaluation of one agent."""
        return self._annotations(
            alert, summary, description, f"tracegrade-one-agent?{_JOB}&{_AGENT}&{_EVALUATION}"
        )

    def of_version(self, alert: str, summary: str, description: str) -> Mapping[str, str]:
        """Annotations of an alert about one evaluation of one version of an agent."""
        return self._annotations(
            alert, summary, description, f"tracegrade-one-agent?{_JOB}&{_AGENT}&{_EVALUATION}&{_VERSION}"
        )

    def of_agent(self, alert: str, summary: str, description: str) -> Mapping[str, str]:
        """Annotations of an alert about one agent."""
        return self._annotations(alert, summary, description, f"tracegrade-one-agent?{_JOB}&{_AGENT}")

    def of_fleet(self, alert: str, summary: str, description: str) -> Mapping[str, str]:
        """Annotations of an alert about all agents."""
        return self._annotations(alert, summary, description, f"tracegrade-agent-quality?{_JOB}")

    def of_service(self, alert: str, summary: str, description: str) -> Mapping[str, str]:
        """Annotations of an alert about tracegrade as a whole."""
        return self._annotations(alert, summary, description, f"tracegrade-service-health?{_JOB}")

    def of_instance(self, alert: str, summary: str, description: str) -> Mapping[str, str]:
        """Annotations of an alert about one process of tracegrade."""
        return self._annotations(alert, summary, description, f"tracegrade-service-health?{_JOB}&{_INSTANCE}")

    def _annotations(self, alert: str, summary: str, description: str, dashboard: str) -> Mapping[str, str]:
        return {
            "summary": summary,
            "description": description,
            "runbook_url": f"{self.runbook_base}#{alert.lower()}",
            "dashboard_url": f"{self.dashboard_base.rstrip('/')}/d/{dashboard}",
        }
