"""The exceptions that the dashboards may take from the rules, as written down beside them."""

import yaml

from tests.support.dashboards import GRAFANA


def exceptions(rule: str) -> dict[str, str]:
    """What is excepted from `rule`, with the reason of each; fails where a reason is missing."""
    excepted = yaml.safe_load((GRAFANA / "lint-exceptions.yaml").read_text())[rule]
    assert all(isinstance(reason, str) and reason for reason in excepted.values()), rule
    return dict(excepted)
