"""How many partitions a topic has, by what the client's statistics show of them."""

from typing import Any

import pytest

from collector.clock import ManualClock
from collector.receivers.kafka import COMPONENT
from collector.telemetry import Metrics


@pytest.mark.parametrize(
    ("shown", "warnings"),
    [
        ([range(6), (0, 1, 2, 4, 5), range(5), range(6)], 0),  # seen while partitions were assigned
        ([range(3), range(6), range(5), range(6)], 1),
        ([range(3), range(6), range(8)], 2),
    ],
)
def test_partitions_that_statistics_lack_are_not_gone(
    shown: list[range], warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    config = COMPONENT.config_model.model_validate({"brokers": ["127.0.0.1:1"], "topic": "spans"})
    nothing_is_read: Any = None
    receiver: Any = COMPONENT.create(config, nothing_is_read, Metrics(), ManualClock())["kafka"]

    for numbers in shown:
        receiver._note_statistics({("spans", number): (0, True) for number in numbers})

    assert warnings == len(caplog.messages)
