"""The dashboards as the files that Grafana is provisioned with."""

import json
from pathlib import Path

from deploy.grafana.generator.agent_quality import agent_quality
from deploy.grafana.generator.one_agent import one_agent
from deploy.grafana.generator.service_health import service_health

DASHBOARDS = Path(__file__).parent.parent / "dashboards"


def dashboard_files() -> dict[str, str]:
    """The content of each file by its name, which is that of the dashboard's uid."""
    return {
        f"{dashboard['uid']}.json": json.dumps(dashboard, indent=2, ensure_ascii=False) + "\n"
        for dashboard in (agent_quality(), one_agent(), service_health())
    }
