"""What a configuration costs on this machine: a scratch service of it under a bounded load."""

from collector.tools.bench.measurement import LEAST_SECONDS, MOST_SECONDS, Bench, Figures
from collector.tools.bench.traffic import Traffic, recorded_traffic, scripted_traffic

__all__ = [
    "LEAST_SECONDS", "MOST_SECONDS", "Bench", "Figures", "Traffic", "recorded_traffic", "scripted_traffic",
]  # fmt: skip
