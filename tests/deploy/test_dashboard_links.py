"""Between alerts, dashboards and runbooks: every link leads to something that is there."""

import re
from collections.abc import Iterator

import yaml

from tests.support.dashboards import GRAFANA, dashboards, member, objects, panels

PROJECT = GRAFANA.parent.parent
RULES = GRAFANA.parent / "prometheus" / "rules"


def alerts() -> Iterator[dict[str, dict[str, str]]]:
    for path in sorted(RULES.glob("*.yaml")):
        for group in yaml.safe_load(path.read_text())["groups"]:
            yield from (rule for rule in group["rules"] if "alert" in rule)


def runbooks_on_dashboards() -> set[str]:
    return {
        str(link["url"]).split("#")[1]
        for dashboard in dashboards()
        for panel in panels(dashboard)
        for link in objects(panel.get("links", []))
    }


def test_every_alert_has_a_panel_that_leads_to_its_runbook_and_no_panel_leads_elsewhere() -> None:
    names = {str(alert["alert"]).lower() for alert in alerts()}

    assert names == runbooks_on_dashboards()


def test_the_runbooks_have_a_section_for_each_link() -> None:
    text = (PROJECT / "docs" / "runbooks.md").read_text()
    anchors = {heading.strip().lower() for heading in re.findall(r"^##+ (.+)$", text, re.MULTILINE)}

    assert set() == runbooks_on_dashboards() - anchors


def test_every_alert_opens_a_dashboard_that_exists_with_variables_that_it_has() -> None:
    variables = {
        str(dashboard["uid"]): {str(one["name"]) for one in objects(member(dashboard, "templating", "list"))}
        for dashboard in dashboards()
    }
    opened = set()
    for alert in alerts():
        found = re.search(r"/d/([a-z-]+)(?:\?(.*))?$", alert["annotations"]["dashboard_url"])
        assert found is not None, alert
        assert set(re.findall(r"var-(\w+)=", found[2] or "")) <= variables[found[1]], alert
        opened.add(found[1])

    assert set(variables) == opened
