import pytest
from pydantic import ValidationError

from collector.cluster import ClusterConfig


def test_a_name_makes_verdicts_wait_until_a_change_would_be_known_and_a_list_does_not() -> None:
    by_name = ClusterConfig.model_validate({"peers_dns": "tracegrade-replicas"})
    listed = ClusterConfig.model_validate({"peers": ["one:4317", "[::1]:4317"], "resolver_interval": "2m"})
    slow_balancers = ClusterConfig.model_validate({"peers_dns": "replicas", "resolver_interval": "30s"})
    short_lived = ClusterConfig.model_validate({"peers_dns": "replicas", "name_ttl": "1s"})

    assert (5.0, 5.0) == (by_name.resolver_interval, by_name.verdict_delay)
    assert 7.0 == slow_balancers.verdict_delay
    assert 3.0 == short_lived.verdict_delay
    assert (120.0, 0.0) == (listed.resolver_interval, listed.verdict_delay)


@pytest.mark.parametrize(
    "written",
    [
        {},
        {"peers_dns": "replicas", "peers": ["one:4317"]},
        {"peers": []},
        {"peers": ["one"]},
        {"peers": [":4317"]},
        {"peers": ["one:0"]},
        {"peers": ["one:4317", "one:4317"]},
        {"peers_dns": "replicas:4317"},
        {"peers_dns": "http://replicas"},
        {"peers_dns": "10.0.0.1"},
        {"peers_dns": ""},
        {"peers_dns": "replicas", "resolver_interval": "500ms"},
        {"peers_dns": "replicas", "gossip": True},
    ],
    ids=str,
)
def test_what_names_no_replicas_is_refused(written: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ClusterConfig.model_validate(written)
