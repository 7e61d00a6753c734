"""The service grades traces of its own, end to end."""

from collector.tools.self_check.checker import SelfCheck
from collector.tools.self_check.listener_client import ListenerTls, NotAcceptedError, authorization
from collector.tools.self_check.traces import self_check_requests

__all__ = ["ListenerTls", "NotAcceptedError", "SelfCheck", "authorization", "self_check_requests"]
