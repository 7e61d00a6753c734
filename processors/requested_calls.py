"""The tool calls that models asked for in messages: to complete calls seen as spans, or in their place."""

from collections.abc import Sequence
from dataclasses import dataclass

from processors.dialect import Conversation
from processors.messages import CallRequest, CallResponse
from processors.placeholder_names import BOGUS_CALL_IDS


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A request with where it stood: the model span it came from and its place among its calls."""

    request: CallRequest
    model: int
    place: int


class RequestedCalls:
    """All requests of a run's models, each once, and the results that later messages carry.

    Inputs repeat the history, so only outputs are requests, and the first result of an id counts.
    """

    def __init__(self, conversations: Sequence[tuple[int, Conversation]]) -> None:
        """Conversations with the position of their span, in order of time."""
        self._conversations = conversations
        self._results: dict[str, CallResponse] | None = None
        self._by_name: dict[str, list[RequestedCall]] = {}
        self._by_id: dict[str, RequestedCall] = {}
        self.in_order: list[RequestedCall] = []
        """Every request, in the order of the turns and of the calls in their answers."""
        for model, conversation in conversations:
            place = 0
            for message in conversation.output:
                for request in message.requests:
                    if is_call_id(request.call_id) and request.call_id in self._by_id:
                        continue
                    requested = RequestedCall(request, model, place)
                    place += 1
                    self.in_order.append(requested)
                    self._by_name.setdefault(request.name, []).append(requested)
                    if is_call_id(request.call_id):
                        self._by_id[request.call_id] = requested

    def result(self, call_id: str) -> CallResponse | None:
        """The result that the messages carry for `call_id`."""
        if self._results is None:
            self._results = {}
            for _, conversation in self._conversations:
                for message in (*conversation.input, *conversation.output):
                    for response in message.responses:
                        if is_call_id(response.call_id):
                            self._results.setdefault(response.call_id, response)
        return self._results.get(call_id)

    def find(self, call_id: str, name: str, nth: int) -> RequestedCall | None:
        """The request with this id; without one, or where ids are not told, the `nth` for `name`."""
        if is_call_id(call_id):
            found = self._by_id.get(call_id)
            if found is not None or self._by_id:
                return found
        same_name = self._by_name.get(name, [])
        return same_name[nth] if nth < len(same_name) else None


class OfferedCalls:
    """The calls that a node was given to execute."""

    def __init__(self, conversation: Conversation) -> None:
        """The calls are the requests in what the node's `conversation` puts out."""
        self._by_id: dict[str, CallRequest] = {}
        self._by_name: dict[str, list[CallRequest]] = {}
        self._count = 0
        for message in conversation.output:
            for request in message.requests:
                self._count += 1
                self._by_id.setdefault(request.call_id, request)
                self._by_name.setdefault(request.name, []).append(request)

    def find(self, call_id: str, name: str, nth: int) -> CallRequest | None:
        """The call with this id; without one the `nth` for `name`, or the only one that was given."""
        if is_call_id(call_id):
            found = self._by_id.get(call_id)
            if found is not None:
                return found
        same_name = self._by_name.get(name, [])
        place = 0 if self._count == 1 else nth
        return same_name[place] if place < len(same_name) else None


def is_call_id(call_id: str | None) -> bool:
    """Whether `call_id` can identify a call."""
    return call_id is not None and call_id not in BOGUS_CALL_IDS
