"""The service grades traces of its own, end to end."""

from collector.tools.self_check.checker import SelfCheck
from collector.tools.self_check.listener_client import ListenerTls, NotAcceptedError, authorization
from collector.tools.self_check.traces import records_request, self_check_requests, spans_request

__all__ = [
    "ListenerTls", "NotAcceptedError", "SelfCheck", "authorization", "records_request", "self_check_requests",
    "spans_request",
]  # fmt: skip
