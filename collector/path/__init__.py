"""The path of spans, between the receivers and the exporters: taken in, finished, delivered.

A span meets these modules in this order, each once: `intake` (or `partition`, for records), the trace buffer,
`finish`, grading, `delivery`. `early_verdicts` looks at traces that wait in the buffer.
"""

from collector.path.delivery import Delivery
from collector.path.early_verdicts import EarlyVerdicts
from collector.path.finish import Finisher
from collector.path.intake import Intake
from collector.path.received_records import read_records

__all__ = ["Delivery", "EarlyVerdicts", "Finisher", "Intake", "read_records"]
