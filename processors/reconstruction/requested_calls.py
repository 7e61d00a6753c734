"""The tool calls that models requested in messages: to complete calls with spans, or in their place."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice

from processors.model import late
from processors.shapes import (
    SYNTHETIC_TOOL_NAMES,
    CallRequest,
    CallResponse,
    ChatMessage,
    Conversation,
    is_call_id,
    result_ids,
    waits_for,
)


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A request with where it stood: the model span it came from and its place among its calls.

    `after` counts the calls of the same span whose results the model had before it requested this one.
    """

    request: CallRequest
    model: int
    place: int
    after: int = 0
    is_answered: bool = False
    """Whether no span can be expected for it: it is answered in the same output."""


class RequestedCalls:
    """All requests of a run's models, each once, and the results that later messages carry.

    Inputs repeat the history, so only outputs are requests, and the first result of an id counts. An id that
    a model gives again after its result is that of another call: some senders number the calls of each turn.
    """

    def __init__(
        self,
        conversations: Sequence[tuple[int, Conversation]],
        requests_calls: Callable[[int], bool | None] = lambda model: None,
    ) -> None:
        """What the pass over requests reads.

        Args:
            conversations: Conversations with the position of their span, in order of time.
            requests_calls: Whether the model's span at a position reports that it requested calls, None where
                it reports neither.
        """
        self._conversations = conversations
        self._by_name: dict[str, list[RequestedCall]] = {}
        self._by_id: dict[str, RequestedCall] = {}
        self._used_again: set[str] = set()
        self.in_order: list[RequestedCall] = []
        """Every request, in the order of the turns and of the calls in their answers."""
        self.hidden: list[int] = []
        """The spans of models that may have requested calls which no message shows."""
        for number, (model, conversation) in enumerate(conversations):
            place = after = 0
            answered: Set[str] | None = None
            output = conversation.output
            if not _requests(output) or _hides_results(output):
                output = self._completed(number, model, output, requests_calls(model))
            results = result_ids(output)
            for message in output:
                if message.responses:
                    after = place
                for request in message.requests:
                    if request.name in SYNTHETIC_TOOL_NAMES:
                        continue
                    if is_call_id(request.call_id) and request.call_id in self._by_id:
                        if answered is None:
                            answered = result_ids(conversation.input)
                        if request.call_id not in answered:
                            continue
                        self._used_again.add(request.call_id)
                    is_answered = not waits_for(request, message, results)
                    requested = RequestedCall(request, model, place, after, is_answered)
                    place += 1
                    self.in_order.append(requested)
                    self._by_name.setdefault(request.name, []).append(requested)
                    if is_call_id(request.call_id):
                        self._by_id.setdefault(request.call_id, requested)

    def _completed(
        self, number: int, model: int, output: Sequence[ChatMessage], requests: bool | None
    ) -> Sequence[ChatMessage]:
        """An answer that may leave calls out: in its place those that the next turn's history repeats."""
        # Some report `stop`, too, for items of an answer that they leave out.
        if requests is False and (self._goes_on(number) if not output else _hides_results(output)):
            requests = None
        leaves_out = leaves_calls_out(output) or requests is True if output else requests is not False
        later = self._repeated_later(number) if leaves_out else ()
        if later is None and not shows_calls(output, requests):
            self.hidden.append(model)
        return later or output

    def _goes_on(self, number: int) -> bool:
        """Whether the next turn was given the same messages, and some later turn shows its answer."""
        if number >= self._last_answer:
            return False
        before, after = (reported.input for _, reported in self._conversations[number : number + 2])
        return 0 < len(before) == len(after)

    @late
    def _last_answer(self) -> int:
        """The last turn that shows its answer; -1 if none does."""
        turns = reversed([*enumerate(self._conversations)])
        return next((number for number, (_, reported) in turns if reported.output), -1)

    def _repeated_later(self, number: int) -> Sequence[ChatMessage] | None:
        """The calls that an answer leaves out, as the next turn's history repeats it; None: it does not."""
        if number + 1 == len(self._conversations):
            return None
        before, history = (reported.input for _, reported in self._conversations[number : number + 2])
        if (not before and number) or any(message.unreadable for message in (*before, *history)):
            return None  # it is unknown what in the history is new
        new = history[len(before) or _after_last_user(history) :]
        is_repeated = any(message.role == "assistant" for message in new)
        return [message for message in new if message.requests] if is_repeated else None

    def result(self, call_id: str) -> CallResponse | None:
        """The result that the messages carry for `call_id`, if that is the id of one call only."""
        return None if call_id in self._used_again else self._results.get(call_id)

    @late
    def _results(self) -> Mapping[str, CallResponse]:
        results: dict[str, CallResponse] = {}
        for _, conversation in self._conversations:
            for message in (*conversation.input, *conversation.output):
                for response in message.responses:
                    if is_call_id(response.call_id):
                        results.setdefault(response.call_id, response)
        return results

    def call_id(self, requested: RequestedCall) -> str:
        """The id of a request; the empty text where a later turn gave it to another call."""
        call_id = requested.request.call_id
        return "" if call_id in self._used_again else call_id

    def answer(self, requested: RequestedCall) -> CallResponse | None:
        """The result of a request: the one with its id, else the one that stands where its result must."""
        result = self.result(requested.request.call_id)
        return self._placed.get((requested.model, requested.place)) if result is None else result

    @late
    def _placed(self) -> Mapping[tuple[int, int], CallResponse]:
        """The results whose id names no call, by the span and the place of what they answer.

        They follow the calls at once: in the same output, or where the next turn was given its history.
        """
        of_turn: dict[int, list[RequestedCall]] = {}
        for requested in self.in_order:
            of_turn.setdefault(requested.model, []).append(requested)
        placed: dict[tuple[int, int], CallResponse] = {}
        for number, (model, conversation) in enumerate(self._conversations):
            turn = iter(of_turn.get(model, ()))
            waiting: list[RequestedCall] = []
            responses: list[CallResponse] = []
            for message in conversation.output:
                if message.requests and responses:
                    _answer(waiting, responses, placed)
                    waiting, responses = [], []
                waiting.extend(islice(turn, len(message.requests)))
                responses.extend(filter(self._names_no_call, message.responses))
            waiting.extend(turn)
            if responses:
                _answer(waiting, responses, placed)
            elif waiting and number + 1 < len(self._conversations):
                names = [requested.request.name for requested in waiting]
                requested_names, responses = _end_of_history(self._conversations[number + 1][1].input)
                responses = list(filter(self._names_no_call, responses))
                if requested_names is None:  # the history has lost what was requested
                    responses = responses[-len(names) :]
                    requested_names = [response.name for response in responses]
                if sorted(requested_names or names) == sorted(names):
                    _answer(waiting, responses, placed)
        return placed

    def _names_no_call(self, response: CallResponse) -> bool:
        call_id = response.call_id
        return not is_call_id(call_id) or call_id not in self._by_id or call_id in self._used_again

    def find(self, call_id: str, name: str, nth: int) -> RequestedCall | None:
        """The request with this id; without one, or where no ids are known, the `nth` for `name`."""
        if is_call_id(call_id) and call_id not in self._used_again:
            match = self._by_id.get(call_id)
            if match is not None or self._by_id:
                return match
        same_name = self._by_name.get(name, [])
        return same_name[nth] if nth < len(same_name) else None


def shows_calls(output: Sequence[ChatMessage], requests_calls: bool | None) -> bool:
    """Whether an answer shows all calls that it requests; `requests_calls`: whether it is known to."""
    if requests_calls is not None:
        return _requests(output) or not requests_calls
    if any(message.unreadable for message in output):
        return False
    return any(message.text or message.requests or message.responses for message in output)


def _requests(output: Sequence[ChatMessage]) -> bool:
    return any(message.requests for message in output)


def leaves_calls_out(output: Sequence[ChatMessage]) -> bool:
    """Whether an answer requests nothing, and has no text or ends with an empty message.

    Or what ran at the provider cannot be read.
    """
    if _hides_results(output):
        return True
    if _requests(output):
        return False
    last = output[-1]
    return not (last.text or last.responses) or not any(message.text for message in output)


def _hides_results(output: Sequence[ChatMessage]) -> bool:
    """Whether data that hold what ran at the provider cannot be read."""
    return any(message.unreadable and message.role == "tool" for message in output)


def _after_last_user(messages: Sequence[ChatMessage]) -> int:
    for place in range(len(messages), 0, -1):
        if messages[place - 1].role == "user":
            return place
    return 0


def requests_of_run(history: Sequence[ChatMessage]) -> list[CallRequest]:
    """The calls that a history requested since the user last spoke."""
    collected: list[CallRequest] = []
    for message in reversed(history):
        if message.role == "user" and not message.responses:
            break
        collected += [request for request in message.requests if request.name not in SYNTHETIC_TOOL_NAMES]
    return collected


def _end_of_history(messages: Sequence[ChatMessage]) -> tuple[list[str] | None, list[CallResponse]]:
    """The names of the calls that were requested last, and the results after them.

    No names: the message that requested them does not show which. None: there is no such message.
    """
    names: list[str] = []
    responses: list[CallResponse] = []
    for message in reversed(messages):
        if message.requests:
            names.extend(request.name for request in reversed(message.requests))
        elif names or message.role == "assistant":
            return names[::-1], responses[::-1]
        else:
            responses.extend(reversed(message.responses))
    return names[::-1] or None, responses[::-1]


def _answer(
    waiting: Sequence[RequestedCall],
    responses: Sequence[CallResponse],
    placed: dict[tuple[int, int], CallResponse],
) -> None:
    """Give the calls their results: by name, or one after the other where no result has a name."""
    if not any(response.name for response in responses):
        if len(responses) == len(waiting):
            for requested, response in zip(waiting, responses, strict=True):
                placed[requested.model, requested.place] = response
        return
    by_name: dict[str, deque[RequestedCall]] = {}
    for requested in waiting:
        by_name.setdefault(requested.request.name, deque()).append(requested)
    for response in responses:
        same_name = by_name.get(response.name)
        if same_name:
            requested = same_name.popleft()
            placed[requested.model, requested.place] = response
