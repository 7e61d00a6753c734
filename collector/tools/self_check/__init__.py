"""The service grades a trace of its own, end to end."""

from collector.tools.self_check.checker import SelfCheck

__all__ = ["SelfCheck"]
