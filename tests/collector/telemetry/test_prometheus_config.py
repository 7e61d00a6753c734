"""`exporters.prometheus`: which resource attributes are labels, and how long series stay."""

import pytest

from collector.configuration import ServiceConfig, parse_configuration, print_configuration
from collector.telemetry import PrometheusConfig
from processors.documents import InvalidInput


def load(settings: str) -> ServiceConfig:
    return parse_configuration(f"exporters:\n  debug: {{}}\n  prometheus: {settings}\n", "test.yaml", {})


def test_without_settings_no_resource_attribute_is_a_label_and_series_stay_for_a_day() -> None:
    prometheus = load("{}").prometheus

    assert () == prometheus.resource_labels()
    assert 86_400.0 == prometheus.series_expiry


def test_attributes_are_labels_of_letters_digits_and_underscores() -> None:
    prometheus = load("{resource_attributes: [service.version, K8s.pod-name], series_expiry: 2h}").prometheus

    assert ("service_version", "k8s_pod_name") == prometheus.resource_labels()
    assert 7200.0 == prometheus.series_expiry


def test_settings_are_printed_and_load_to_the_same() -> None:
    config = load('{endpoint: "127.0.0.1:0", resource_attributes: [service.version]}')

    printed = print_configuration(config)

    assert "- service.version" in printed
    assert "series_expiry: 24h" in printed
    assert config == parse_configuration(printed, "printed.yaml", {})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("{resource_attributes: [gen_ai.agent.name]}", "gen_ai_agent_name is already used"),
        ("{resource_attributes: [le]}", "le is already used"),
        ("{resource_attributes: [job]}", "job is already used"),
        ("{resource_attributes: [9lives]}", "expected a letter as its first character"),
        ('{resource_attributes: [""]}', "expected a letter as its first character"),
        ("{resource_attributes: [a.b, a_b]}", "are the same label a_b"),
        ("{series_expiry: 59s}", "series_expiry"),
    ],
)
def test_what_cannot_be_a_label_is_refused_with_the_reason(settings: str, message: str) -> None:
    with pytest.raises(InvalidInput) as found:
        load(settings)

    assert message in str(found.value)


def test_every_label_of_the_table_is_taken() -> None:
    with pytest.raises(ValueError, match="is already used"):
        PrometheusConfig(resource_attributes=("predicted",))
