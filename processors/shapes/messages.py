"""Chat messages of all providers and conventions in one normal form.

Telemetry repeats whatever shape a provider's API has. A message here is a role, its text, the tool calls
it requests and the results it carries; everything else in a message is left out.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from processors.model import (
    ABSENT,
    MAX_TEXT_LENGTH,
    REDACTION_MARKERS,
    DecodedValue,
    JsonObject,
    JsonValue,
    Message,
    ValueState,
    is_broken_data,
    is_digest,
    is_mask,
    json_text,
    parse_json,
    parse_text,
    text_value,
)
from processors.shapes.known_names import BOGUS_CALL_IDS
from processors.shapes.members import list_at, object_at, objects_at, text_at, value_at

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]

MAX_MESSAGES = 10_000
"""Messages of one list beyond this number are not read."""

_ROLES: dict[str, Role] = {
    "system": "system", "developer": "system", "user": "user", "human": "user", "assistant": "assistant",
    "ai": "assistant", "model": "assistant", "bot": "assistant", "tool": "tool", "function": "tool",
    "ipython": "tool",
}  # fmt: skip
_CLASS_ROLES: dict[str, Role] = {
    "AIMessage": "assistant", "HumanMessage": "user", "ToolMessage": "tool", "System": "system",
}  # fmt: skip
_SERVER_CALLS = frozenset({"server_tool_call", "server_tool_use", "mcp_tool_use", "mcp_call"})
"""Types of calls at a model's provider that bear a name."""
_RESPONSE_TYPES = frozenset({"tool_call_response", "server_tool_call_response", "tool-result", "tool_result"})
_RESPONSE_ENDINGS = ("_tool_result", "_call_output")
"""How the types of results end that name the tool: `web_search_tool_result`, `shell_call_output`."""
_ID_KEYS = ("call_id", "id", "toolCallId", "toolUseId", "tool_call_id", "tool_use_id")
"""Where a call and its result hold its id; OpenAI's items have an `id` of their own besides."""
_FAILED = ("error", "failed")
_RESULT_KEYS = ("response", "result", "output", "content")
_SERVER_RESPONSE = "server_tool_call_response"
_SUCCESS = "OUTCOME_OK"
"""How code that a Google model ran ended well."""
_BLOCKS = frozenset(
    {
        "text", "json", "reasoning", "thinking", "redacted_thinking", "tool_call", "tool_use",
        "server_tool_use", "mcp_tool_use",
    }
)  # fmt: skip
"""Types of parts of one message."""
_WRAPPED_RESPONSES = (
    "toolResult", "function_response", "functionResponse", "code_execution_result", "codeExecutionResult",
)  # fmt: skip
_CODE_KEYS = ("executable_code", "executableCode")
_WRAPPED = ("toolUse", "function_call", "functionCall", *_WRAPPED_RESPONSES, *_CODE_KEYS, "tool_call")

_JSON_BLOCK = '[{"json":'
"""How a list of one block of data begins as a text."""

_PROVIDER_CALLS = {
    "code_interpreter_call": "code_interpreter", "file_search_call": "file_search",
    "image_generation_call": "image_generation", "web_search_call": "web_search",
    "x_search_call": "x_search",
}  # fmt: skip
"""Types of calls at a model's provider that bear no name; some senders put the type in its place."""
_PROVIDER_TYPES = _SERVER_CALLS.union(_PROVIDER_CALLS)
_CLIENT_CALLS = {
    "apply_patch_call": "apply_patch", "computer_call": "computer", "local_shell_call": "local_shell",
    "shell_call": "shell",
}  # fmt: skip
"""Types of calls that bear no name either, of tools that the provider knows and the caller executes."""
_REQUEST_TYPES = _PROVIDER_TYPES.union(
    ("tool_call", "tool-call", "tool_use", "function_call", "function"),
    ("custom_tool_call", "mcp_approval_request"),
    _CLIENT_CALLS,
)
_PROVIDER_IDS = ("srvtoolu_", "mcptoolu_")
"""How Anthropic's ids of such calls begin: senders that write all calls in one form keep them."""
_CODE_TOOL = "code_execution"
"""What the GenAI conventions call the code that a Google model runs."""
_PROVIDER_RESULTS = ("output", "outputs", "results")
_NO_ARGUMENTS = frozenset(
    {
        "type", "id", "name", "status", "caller", "server_name", "server_label", "error", "result",
        *_PROVIDER_RESULTS,
    }
)  # fmt: skip
"""What a call at the provider holds in addition to its arguments."""

PROVIDER_CALL_MARKERS = (
    b"server_tool", b"mcp_call", b"_search_call", b"srvtoolu_", b"mcptoolu_", b"interpreter_call",
    b"generation_call", b"xecutable", b'"builtin"',
)  # fmt: skip
"""What the bytes of a span contain whose messages hold calls that ran at the model's provider."""

PRINTED_ITEMS = ("Response", "{'")
"""How items of a provider's response begin that a sender printed, each as a text."""
_ENCODED_TWICE = ('"[{\\"', '"{\\"')
"""How data begin that are a JSON text in a JSON text."""
_PARTS_AS_TEXT = ('[{"type":', '[{"text":')
"""How the parts of a message begin that a sender wrote as a text."""

_EMPTY: Sequence[JsonValue] = ("", [{"type": "text", "content": ""}], [{"type": "text", "text": ""}])

_ANSWERS = ("choices", "candidates", "generations", "output")
"""Where a response of a provider or a framework holds what the model answered."""

_ENDS = frozenset({"stop", "end_turn"})
"""Reasons for which a model ends its turn by itself."""


class CallRequest(Struct, frozen=True):
    """A tool call as a model requested it; `arguments` as the message carries them, None if it does not."""

    name: str
    call_id: str
    arguments: JsonValue = None
    has_arguments: bool = False
    runs_at_provider: bool = False
    """True for tools that the model's provider runs itself."""
    awaits_approval: bool = False
    """True where the provider runs the tool once the caller has approved it."""
    gives_answer: bool = False
    """True for tools through which the model gives its answer, where the span lists these."""


class CallResponse(Struct, frozen=True):
    """The result of a tool call as a message carries it."""

    call_id: str
    name: str
    content: JsonValue
    failed: bool = False
    has_content: bool = True
    """False where the message shows that there was a result, but not which."""


class ChatMessage(Struct):
    """One message in the normal form. Readings share its lists: they are replaced, never changed."""

    role: Role
    text: str = ""
    requests: list[CallRequest] = field(default_factory=list)
    responses: list[CallResponse] = field(default_factory=list)
    unreadable: str = ""
    """Data in the message, or in its place, that was cut off or cannot be parsed: it may hold anything."""
    finish_reason: str = ""
    """Why the model ended it, where the message has that."""
    closing: str | None = None
    """The text after the last call or result; None where the order is unknown."""
    is_empty: bool = False
    """Whether the message has the empty text alone, or ended without anything: that is the answer."""

    @property
    def ends_turn(self) -> bool:
        """Whether the model ended by itself, and with text: then it waits for no call in the message."""
        text = self.text if self.closing is None else self.closing
        return self.finish_reason in _ENDS and bool(text)

    @property
    def answer(self) -> str:
        """The text that the model gave knowing the results in the message."""
        return self.closing or (self.text if not self.responses or self.finish_reason in _ENDS else "")


_HISTORIES: dict[Role, tuple[str, Sequence[ChatMessage]]] = {}
"""The list that was read last, up to its closing bracket, and its messages: the history of a turn begins with
that of the turn before it, so that only its end has to be read."""


def read_messages(value: JsonValue, default_role: Role = "user") -> list[ChatMessage]:
    """The messages in `value`: a list of them, one of them, their JSON text, or plain text.

    What is not recognised is left out. Never raises.
    """
    if not isinstance(value, str):
        return _messages_of(value, default_role)
    text = value.strip()
    if is_mask(text) or is_digest(text):
        return []
    if text.startswith(_ENCODED_TWICE):
        try:
            return read_messages(parse_json(text), default_role)
        except ValueError:
            return [ChatMessage(default_role, unreadable=value)]
    if text[:1] not in ("[", "{"):
        return [ChatMessage(default_role, value)] if text else []
    begun, known = _HISTORIES.get(default_role, ("", ()))
    if len(text) == len(begun) + 1 and text[-1] == "]" and text.startswith(begun):
        return list(map(replace, known))
    try:
        if (
            begun
            and text.startswith(f"{begun},")
            and len(text) <= MAX_TEXT_LENGTH
            and (further := list_at(parse_json(f"[{text[len(begun) + 1 :]}")))
        ):
            size = len(known) + len(further)
            messages = [*known, *_read_items(further, default_role)][:MAX_MESSAGES]
        else:
            content = parse_json(text)
            size = len(content) if isinstance(content, list) else 0
            messages = _messages_of(content, default_role)
    except ValueError:
        is_broken = is_broken_data(text)
        return [ChatMessage(default_role, "" if is_broken else value, unreadable=value if is_broken else "")]
    if 1 < size == len(messages):  # one by one: what follows them does not change how they are read
        _HISTORIES[default_role] = text[:-1], messages
        return list(map(replace, messages))
    return messages


def _messages_of(content: JsonValue, default_role: Role) -> list[ChatMessage]:
    if isinstance(content, dict):
        inner = content.get("messages")
        content = inner if isinstance(inner, list) else [content]
    while (
        isinstance(content, list)
        and len(content) == 1
        and isinstance(content[0], list)
        and not is_role_pair(content[0])
    ):
        content = content[0]
    if not isinstance(content, list):
        return []
    if content and all(map(_is_content_block, content)):
        blocks = ChatMessage(default_role)
        _read_parts(blocks, content, skip_requests=False)
        return [blocks]
    return _read_items(content, default_role)


def _read_items(items: Sequence[JsonValue], default_role: Role) -> list[ChatMessage]:
    messages: list[ChatMessage] = []
    for item in items[:MAX_MESSAGES]:
        if isinstance(item, str):
            # Mistral's SDK 2 wrote each message of an array as a JSON text of its own.
            is_message = item.startswith("{") and '"role"' in item
            messages += read_messages(item, default_role) if is_message else [ChatMessage(default_role, item)]
        elif isinstance(item, dict):
            messages.append(read_message(item, default_role))
        elif isinstance(item, list) and is_role_pair(item):
            messages.append(read_message({"role": item[0], "content": item[1]}, default_role))
    return messages


def read_model_response(value: JsonValue) -> list[ChatMessage]:
    """The messages in a response: its choices, candidates, generations or output items, or it is a message.

    Text that is no data is the answer itself. Never raises.
    """
    try:
        content = parse_text(value.strip()) if isinstance(value, str) else value
    except ValueError:
        content = value if isinstance(value, str) else None
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        only = content[0]
        content = only if any(isinstance(only.get(key), list) for key in _ANSWERS) else content
    if not isinstance(content, dict):
        return read_messages(content, "assistant")
    calls = content.get("toolCalls")
    if isinstance(calls, list):
        return assistant_messages(text_at(content, "text"), calls)
    for key in _ANSWERS:
        items = content.get(key)
        if isinstance(items, dict):
            return read_model_response(items)
        if isinstance(items, list):
            # Generations of several prompts are lists of lists.
            flat = [part for item in items for part in (item if isinstance(item, list) else [item])]
            return read_messages([_message_of(item) for item in flat], "assistant")
    return read_messages(content, "assistant")


def _message_of(item: JsonValue) -> JsonValue:
    """The message in a choice, a candidate or a generation."""
    if not isinstance(item, dict):
        return item
    for key in ("message", "content"):
        inner = item.get(key)
        if isinstance(inner, dict):
            return inner
    text = item.get("text")
    return text if isinstance(text, str) and "role" not in item and "type" not in item else item


def in_turns(messages: Sequence[ChatMessage], places: Sequence[int | None]) -> list[Message]:
    """Messages with text; a new turn begins with each user message that follows an answer.

    `places` are how many calls precede each of `messages`, None where that is not known.
    """
    turn = 0
    answered = False
    collected: list[Message] = []
    for message, after in zip(messages, places, strict=True):
        if message.role == "user" and answered and message.text:
            turn += 1
            answered = False
        elif message.role in ("assistant", "tool"):
            answered = True
        if message.text:
            collected.append(Message(role=message.role, content=message.text, turn=turn, after=after))
    return collected


def is_role_pair(item: JsonValue) -> bool:
    """Whether `item` is a message written as a list of its role and its text."""
    match item:
        case [str(role), str()]:
            return role in _ROLES
    return False


def read_message(item: JsonObject, default_role: Role = "user") -> ChatMessage:
    """One message object in the normal form."""
    for key in () if "content" in item or "parts" in item else ("message", "data", "kwargs"):
        inner = item.get(key)
        if isinstance(inner, dict) and ("parts" not in item and "content" not in item):
            if "role" not in inner:
                inner = {"role": item.get("role") or _role_of_class(item), **inner}
            item = inner
    kind = item.get("type")
    role_name = item.get("role")
    if not isinstance(role_name, str) and isinstance(kind, str):
        if kind in _ROLES:
            role_name = kind
        elif _is_request(kind) or _is_response(kind):
            message = ChatMessage("assistant" if _is_request(kind) else "tool")
            message.text = _read_part(message, item, skip_requests=False)
            return message
    role = default_role
    if isinstance(role_name, str):
        # A tool's message may bear the tool's name as its role.
        other: Role = "tool" if "additional_kwargs" in item else default_role
        role = _ROLES.get(role_name.lower(), other)
    message = ChatMessage(
        role, finish_reason=text_at(item, "finish_reason") if "finish_reason" in item else ""
    )
    calls = item.get("tool_calls")
    for call in _members(calls) if calls else ():
        add_request(message, call)
    if isinstance(calls, str) and is_broken_data(calls):
        message.unreadable = calls
    if isinstance(old_call := item.get("function_call"), dict):
        add_request(message, old_call)
    content = item.get("parts", item.get("content"))
    if content is None:
        content = item.get("contents", item.get("refusal"))
    if isinstance(content, str) and content.startswith(_PARTS_AS_TEXT):
        content = _parts_in(content)
    if role == "tool" and not _has_response(content):
        message.responses.append(
            CallResponse(
                text_at(item, "tool_call_id") or text_at(item, "id"),
                text_at(item, "name"),
                _response_content(content),
                failed=item.get("status") == "error" or item.get("is_error") is True,
                has_content=not item.keys().isdisjoint(("parts", "content", "contents")),
            )
        )
        message.text = text_of(content, "tool")
        return message
    if isinstance(content, str):
        message.text = content
    else:
        _read_parts(message, content, skip_requests=bool(message.requests))
    has_ended = message.finish_reason.lower() in _ENDS
    message.is_empty = (content in _EMPTY or (content == [] and has_ended)) and not message.requests
    return message


def _parts_in(text: str) -> JsonValue:
    """The parts of a message that `text` writes, else the text."""
    try:
        parts = parse_json(text)
    except ValueError:
        return text
    return parts if all(map(_is_content_block, list_at(parts))) else text


def text_of(content: JsonValue, role: Role = "assistant") -> str:
    """The text in a message's content: text itself, or the text blocks of a list.

    Blocks are joined by newlines, but for those of an assistant that follow each other: they are one text.
    """
    if isinstance(content, str):
        return content
    message = ChatMessage(role)
    _read_parts(message, content, skip_requests=True)
    return message.text


def last_text(messages: Sequence[ChatMessage], role: Role) -> str | None:
    """The text of the last message of `role` that has any, or None.

    Of a message that holds calls or results as well it is what follows them, if anything does.
    """
    texts = (message.closing or message.text for message in reversed(messages) if message.role == role)
    return next(filter(None, texts), None)


def last_content(messages: Sequence[ChatMessage], role: Role) -> DecodedValue:
    """The last text of `role`, also an empty one; `TRUNCATED` where that message cannot be read."""
    for message in reversed(messages):
        if message.role == role and message.unreadable:
            return DecodedValue(None, message.unreadable, ValueState.TRUNCATED)
        if message.role == role and (message.text or message.is_empty):
            return text_value(message.closing or message.text)
    return ABSENT


def first_choice(messages: list[ChatMessage]) -> list[ChatMessage]:
    """What a model answered, without further choices: nothing follows in one by itself when it has ended.

    Agents go on with the first.
    """
    for place, message in enumerate(messages[:-1], 1):
        following = messages[place]
        if message.ends_turn and following.role == "assistant" and following.finish_reason:
            return messages[:place]
    return messages


def after_results(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """What a model answers and requests after the last result: all where there is none.

    Calls that it does not wait for are left out: they ran at its provider, or are answered next to it.
    """
    results = result_ids(messages)
    rest: list[ChatMessage] = []
    for message in reversed(messages):
        if message.role == "assistant" and (message.requests or message.responses):
            waiting = [request for request in message.requests if waits_for(request, message, results)]
            rest.append(replace(message, text=message.answer, requests=waiting, responses=[]))
        elif not message.responses:
            rest.append(message)
        if message.responses:
            break
    return rest[::-1]


def result_ids(messages: Iterable[ChatMessage]) -> Set[str]:
    """The ids of the calls that messages hold results of."""
    return {response.call_id for message in messages for response in message.responses}


def waits_for(request: CallRequest, message: ChatMessage, results: Set[str]) -> bool:
    """Whether the model waits for a call in `message`, where the output has results for these ids."""
    if request.runs_at_provider:
        return request.awaits_approval and request.call_id not in results
    if message.ends_turn:
        return False
    return request.call_id not in results if is_call_id(request.call_id) else not message.responses


def is_call_id(call_id: str | None) -> bool:
    """Whether `call_id` can identify a call."""
    return call_id is not None and call_id not in BOGUS_CALL_IDS and call_id not in REDACTION_MARKERS


def add_request(message: ChatMessage, call: JsonObject) -> None:
    """Add the tool call in `call`, in any provider's shape, to a message; one without a name is left out."""
    inner = call.get("tool_call")
    call = inner if isinstance(inner, dict) else call
    function = call.get("function", call.get("custom"))
    named = function if isinstance(function, dict) else call
    kind = call.get("type")
    at_provider = (
        kind in _PROVIDER_TYPES or call.get("builtin") is True or call.get("providerExecuted") is True
    )
    name = _first_string(named, "name", "toolName", "tool_name")
    name_or_kind = name or text_at(call, "type")
    if name_or_kind in _PROVIDER_CALLS:
        name, at_provider = _PROVIDER_CALLS[name_or_kind], True
    name = _CLIENT_CALLS.get(name_or_kind, name)
    if not name:
        _add_piece(message, named.get("arguments"))
        return
    key = next((key for key in ("arguments", "args", "input", "parameters") if key in named), "")
    arguments, has_arguments = named.get(key), bool(key)
    # A call that waited for an approval goes by the id of the request for it.
    call_id = _first_string(call, "approval_request_id", *_ID_KEYS)
    at_provider = at_provider or call_id.startswith(_PROVIDER_IDS)
    if kind in _PROVIDER_TYPES or kind in _CLIENT_CALLS:
        nested = call.get("server_tool_call", call)
        if isinstance(nested, dict):
            if not has_arguments:
                arguments, has_arguments = _arguments_at_provider(nested), True
            _add_result_at_provider(message, nested, call_id)
    awaits_approval = kind == "mcp_approval_request"
    message.requests.append(
        CallRequest(name, call_id, arguments, has_arguments, at_provider or awaits_approval, awaits_approval)
    )


def _add_piece(message: ChatMessage, piece: JsonValue) -> None:
    """Add to the arguments of the last request, as they were streamed, a piece that names no tool."""
    last = message.requests[-1] if message.requests else None
    if last is None or not isinstance(piece, str) or not isinstance(last.arguments, (str, type(None))):
        return
    begun = last.arguments or ""
    if begun.strip():
        try:
            parse_json(begun)  # and nothing more lenient: of many pieces each is looked at
        except ValueError:
            if begun.lstrip()[0] != "{":
                return
        else:
            return
    message.requests[-1] = replace(last, arguments=begun + piece, has_arguments=True)


def _arguments_at_provider(call: JsonObject) -> JsonValue:
    """The arguments of a call at the provider: under a key of theirs, else what it holds in addition."""
    for key in ("input", "arguments", "action", "operation"):
        if call.get(key) is not None:
            return call[key]
    return {key: value for key, value in call.items() if key not in _NO_ARGUMENTS}


def _add_result_at_provider(message: ChatMessage, call: JsonObject, call_id: str) -> None:
    """Add the result that such a call may hold itself."""
    error = call.get("error")
    results = [_response_content(call[key]) for key in _PROVIDER_RESULTS if call.get(key) is not None]
    if results or error is not None:
        message.responses.append(CallResponse(call_id, "", (*results, error)[0], error is not None))


def assistant_messages(text: str, calls: JsonValue = None) -> list[ChatMessage]:
    """The assistant's message of `text` and of the calls in a list; none where there is neither."""
    message = ChatMessage("assistant", text)
    for call in objects_at(calls):
        add_request(message, object_at(call, "payload") or call)
    return [message] if message.text or message.requests else []


def _role_of_class(item: JsonObject) -> JsonValue:
    """The role of a serialised message: its type, else by its class, as in `[..., "AIMessage"]`."""
    kind = text_at(item, "type")
    if kind in _ROLES:
        return kind
    name = text_at(list_at(item, "id")[-1:], 0)
    return next((role for part, role in _CLASS_ROLES.items() if part in name), None)


def _is_request(kind: JsonValue) -> bool:
    return isinstance(kind, str) and kind in _REQUEST_TYPES


def _is_response(kind: JsonValue) -> bool:
    return isinstance(kind, str) and (kind in _RESPONSE_TYPES or kind.endswith(_RESPONSE_ENDINGS))


def _is_content_block(item: JsonValue) -> bool:
    if not isinstance(item, dict) or "role" in item:
        return False
    kind = item.get("type")
    if isinstance(kind, str) and (kind in _BLOCKS or kind.endswith("_tool_result")):
        return True
    return item.keys() <= {"text", "json", "toolUse", "toolResult", "reasoningContent"}


def _members(value: JsonValue) -> Iterator[JsonObject]:
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            return
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    yield from (member for member in members if isinstance(member, dict))


def _read_parts(message: ChatMessage, parts: JsonValue, *, skip_requests: bool) -> None:
    """Read what `parts` hold into a message that has no text yet."""
    if isinstance(parts, dict):
        parts = [parts]
    if not isinstance(parts, list):
        return
    texts: list[str] = []
    known = closing = 0
    goes_on = False
    for part in parts:
        text = part if isinstance(part, str) else ""
        if isinstance(part, dict):
            inner = part.get("message_content")
            text = _read_part(
                message, inner if isinstance(inner, dict) else part, skip_requests=skip_requests
            )
            if known != len(message.requests) + len(message.responses):
                known, closing = len(message.requests) + len(message.responses), len(texts)
        goes_on = goes_on and message.role == "assistant" and not text.startswith(PRINTED_ITEMS)
        if text and goes_on and len(texts) > closing:
            texts[-1] += text  # a model's text in several parts is one: each citation, each piece begins one
        elif text:
            texts.append(text)
        goes_on = bool(text)
    message.text = "\n".join(texts)
    if known and not skip_requests:
        message.closing = "\n".join(texts[closing:])


def _read_part(message: ChatMessage, part: JsonObject, *, skip_requests: bool) -> str:
    """Add the request or the result in `part` to the message; the text in it, or the empty text."""
    kind = part.get("type")
    for key in _WRAPPED if kind in (None, "tool_use", "tool_call") else ():
        inner = part.get(key)
        if isinstance(inner, dict):
            if key in _WRAPPED_RESPONSES:
                return _add_response(message, inner)
            if key in _CODE_KEYS:
                message.requests.append(CallRequest(_CODE_TOOL, "", inner, True, runs_at_provider=True))
            elif not skip_requests:
                add_request(message, inner)
            return ""
    if _is_request(kind):
        if not skip_requests:
            add_request(message, part)
    elif _is_response(kind):
        return _add_response(message, part)
    elif kind in (None, "text", "input_text", "output_text", "refusal") and not _is_thought(part):
        text = part.get("content", part.get("text", part.get("refusal")))
        if isinstance(text, str):
            return text
    return ""


def _is_thought(part: JsonObject) -> bool:
    """Whether the text in `part` is a thought of a Gemini model, marked itself or on its way over A2A."""
    return part.get("thought") is True or value_at(part, "metadata", "adk_thought") is True


def _add_response(message: ChatMessage, part: JsonObject) -> str:
    """Add the result in `part` to the message; the text that it gives a message of a tool."""
    key = next((key for key in (*_RESULT_KEYS, _SERVER_RESPONSE) if key in part), "")
    content, has_content = part.get(key), bool(key)
    failed = part.get("is_error") is True or part.get("isError") is True or part.get("status") in _FAILED
    failed = failed or part.get("outcome", _SUCCESS) != _SUCCESS
    if key == _SERVER_RESPONSE and isinstance(content, dict):
        failed = failed or content.get("outcome", _SUCCESS) != _SUCCESS
        content = next((content[key] for key in _RESULT_KEYS if key in content), content)
    if isinstance(content, dict):
        failed = failed or str(content.get("type")).endswith("_tool_result_error")
    if isinstance(content, dict) and content.get("type") in ("error-text", "error-json", "text", "json"):
        failed = failed or str(content["type"]).startswith("error")
        content = content.get("value", content.get("text"))
    call_id = _first_string(part, *_ID_KEYS)
    name = _first_string(part, "name", "toolName", "tool_name")
    message.responses.append(CallResponse(call_id, name, _response_content(content), failed, has_content))
    if message.role != "tool" or not has_content:
        return ""
    return content if isinstance(content, str) else json_text(content)


def _has_response(content: JsonValue) -> bool:
    return any(_is_response(part.get("type")) or "toolResult" in part for part in objects_at(content))


def _response_content(content: JsonValue) -> JsonValue:
    """Blocks of nothing but text as that text, anything else as it is."""
    if isinstance(content, str) and content.startswith(_JSON_BLOCK):
        try:
            content = parse_json(content)
        except ValueError:
            return content
    if isinstance(content, list) and content:
        texts = [
            text
            for block in content
            if isinstance(block, dict)
            and block.keys() <= {"type", "text", "content", "id"}
            and isinstance(text := block.get("text", block.get("content")), str)
        ]
        if len(texts) == len(content):
            return "\n".join(texts)
        if len(content) == 1 and object_at(content, 0).keys() == {"json"}:
            return value_at(content, 0, "json")
    return content


def _first_string(mapping: JsonObject, *keys: str) -> str:
    for key in keys:
        value = mapping.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return ""
