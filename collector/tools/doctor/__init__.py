"""Sends a trace through every hop of a configuration and reports what is wrong with each."""

from collector.tools.doctor.examination import examine
from collector.tools.doctor.hop import Hop, State
from collector.tools.doctor.listeners import Sender

__all__ = ["Hop", "Sender", "State", "examine"]
