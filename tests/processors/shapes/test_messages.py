"""Messages of every provider come out in one form."""

import json

import pytest

from processors.model import JsonObject, JsonValue
from processors.shapes.messages import read_messages, waits_for

ARGUMENTS: JsonValue = {"city": "Oslo"}
TEXT = json.dumps(ARGUMENTS)

REQUESTS: list[JsonValue] = [
    {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "c1", "name": "get", "arguments": ARGUMENTS}],
    },
    {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "get", "arguments": TEXT}}]},
    {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "name": "get", "args": ARGUMENTS, "type": "tool_call"}],
    },
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "get", "input": ARGUMENTS}]},
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "get", "input": ARGUMENTS}}]},
    {"role": "model", "parts": [{"function_call": {"id": "c1", "name": "get", "args": ARGUMENTS}}]},
    {
        "role": "assistant",
        "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "get", "input": ARGUMENTS}],
    },
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "get", "arguments": TEXT},
    {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "get", "input": TEXT},
    {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "get", "input": TEXT}}],
    },
    {"type": "mcp_approval_request", "id": "c1", "name": "get", "server_label": "s", "arguments": TEXT},
    {
        "type": "mcp_call",
        "id": "mcp_1",
        "approval_request_id": "c1",
        "name": "get",
        "arguments": TEXT,
        "output": "sunny",
    },
    json.dumps(
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "c1", "name": "get", "arguments": ARGUMENTS}],
        }
    ),
    {
        "message": {
            "role": "assistant",
            "tool_calls": [{"tool_call": {"id": "c1", "function": {"name": "get", "arguments": TEXT}}}],
            "contents": [
                {"message_content": {"type": "tool_use", "id": "c1", "name": "get", "input": ARGUMENTS}}
            ],
        }
    },
    {
        "type": "ai",
        "data": {"content": "", "type": "ai", "tool_calls": [{"name": "get", "args": ARGUMENTS, "id": "c1"}]},
    },
    {
        "lc": 1,
        "id": ["schema", "AIMessage"],
        "kwargs": {"content": "", "tool_calls": [{"name": "get", "args": ARGUMENTS, "id": "c1"}]},
    },
]

RESPONSES: list[JsonValue] = [
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "sunny"}]},
    {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "result": "sunny"}]},
    {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "sunny"}]},
    {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "sunny"}]}}]},
    {"role": "user", "parts": [{"function_response": {"id": "c1", "name": "get", "response": "sunny"}}]},
    {
        "role": "tool",
        "content": [
            {"type": "tool-result", "toolCallId": "c1", "output": {"type": "text", "value": "sunny"}}
        ],
    },
    {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
    {"type": "function_call_output", "id": "fco_1", "call_id": "c1", "output": "sunny"},
    {"type": "local_shell_call_output", "id": "c1", "output": "sunny"},
    json.dumps({"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "sunny"}]}),
    {"type": "tool", "data": {"content": "sunny", "tool_call_id": "c1", "type": "tool"}},
]


@pytest.mark.parametrize("message", REQUESTS)
def test_a_request_is_read_once_with_id_name_and_arguments(message: JsonValue) -> None:
    requests = [request for read in read_messages([message], "assistant") for request in read.requests]

    assert [("c1", "get")] == [(request.call_id, request.name) for request in requests]
    assert requests[0].arguments in (ARGUMENTS, TEXT)


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ({"type": "computer_call", "action": ARGUMENTS}, "computer"),
        ({"type": "shell_call", "action": ARGUMENTS}, "shell"),
        ({"type": "local_shell_call", "action": ARGUMENTS}, "local_shell"),
        ({"type": "apply_patch_call", "operation": ARGUMENTS}, "apply_patch"),
    ],
)
def test_a_tool_that_the_provider_knows_and_the_caller_executes_is_requested(
    item: JsonObject, name: str
) -> None:
    (message,) = read_messages([{"id": "i1", "call_id": "c1", **item}], "assistant")

    (request,) = message.requests
    assert (name, "c1", ARGUMENTS, False) == (
        request.name,
        request.call_id,
        request.arguments,
        request.runs_at_provider,
    )


def test_a_call_at_the_provider_waits_for_its_approval() -> None:
    item: JsonObject = {"type": "mcp_approval_request", "id": "c1", "name": "get", "arguments": TEXT}
    (message,) = read_messages([item], "assistant")

    (request,) = message.requests
    assert request.runs_at_provider
    assert waits_for(request, message, frozenset())
    assert not waits_for(request, message, {"c1"})


@pytest.mark.parametrize("message", RESPONSES)
def test_a_result_is_read_with_its_id(message: JsonValue) -> None:
    responses = [response for read in read_messages([message]) for response in read.responses]

    assert [("c1", "sunny", False)] == [
        (response.call_id, response.content, response.failed) for response in responses
    ]


@pytest.mark.parametrize(
    "message",
    [
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": True}],
        },
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "c1", "content": "no", "status": "error"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "no", "status": "error"},
        {"type": "apply_patch_call_output", "call_id": "c1", "output": "no", "status": "failed"},
    ],
)
def test_failed_results_say_so(message: JsonValue) -> None:
    assert [True] == [response.failed for read in read_messages([message]) for response in read.responses]


@pytest.mark.parametrize(
    ("value", "role", "text"),
    [
        ("plain", "user", "plain"),
        (['{"role": "user", "content": "hi"}'], "user", "hi"),
        (['{"city": "Oslo"}'], "user", '{"city": "Oslo"}'),
        (
            [{"role": "assistant", "content": [{"type": "refusal", "refusal": "I will not."}]}],
            "assistant",
            "I will not.",
        ),
        ([{"role": "assistant", "content": None, "refusal": "I will not."}], "assistant", "I will not."),
        ([{"role": "human", "content": "hi"}], "user", "hi"),
        (
            [{"role": "user", "parts": [{"type": "text", "content": "a"}, {"type": "text", "content": "b"}]}],
            "user",
            "a\nb",
        ),
        ([{"role": "assistant", "content": [{"type": "output_text", "text": "x"}]}], "assistant", "x"),
        ('{"messages": [{"role": "system", "content": "s"}]}', "system", "s"),
        ([{"type": "text", "content": "only blocks"}], "user", "only blocks"),
        (
            [{"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, {"content": "x"}]}],
            "assistant",
            "x",
        ),
    ],
)
def test_texts_are_read_with_their_role(value: JsonValue, role: str, text: str) -> None:
    assert [(role, text)] == [(message.role, message.text) for message in read_messages(value)]


@pytest.mark.parametrize(
    "value", [None, 3, [], {}, [[]], [None, 4], [{"role": 7}], [{"tool_calls": "x"}], "[1", [[[["x"]]]]]
)
def test_what_is_no_message_does_no_harm(value: JsonValue) -> None:
    assert not any(message.requests or message.responses for message in read_messages(value))


def test_a_message_with_the_name_of_its_tool_as_role_is_a_tools() -> None:
    listed: list[JsonValue] = [
        {"role": "user", "content": "Weather?"},
        {"role": "get", "content": "18", "additional_kwargs": {}},
    ]

    assert ["user", "tool"] == [message.role for message in read_messages(listed)]


def test_a_result_of_one_block_of_data_written_as_a_text_is_that_data() -> None:
    part: JsonValue = {"type": "tool_call_response", "id": "c1", "response": '[{"json": {"t": 1}}]'}

    told: JsonValue = [{"role": "user", "parts": [part]}]

    (message,) = read_messages(told)

    assert [{"t": 1}] == [response.content for response in message.responses]


@pytest.mark.parametrize("raw", ["__REDACTED__", "[REDACTED]", " HIDDEN:non-empty "])
def test_what_stands_for_hidden_messages_is_no_message(raw: str) -> None:
    assert [] == read_messages(raw)


TURN = '{"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "On its way."}'
ENDS = [
    ', {"role": "tool", "tool_call_id": "c1", "content": {"at": 18446744073709551617}}]',
    ', ["user", "And now?"], "Hello"]',
    ', {"role": "user", "content": [{"type": "text", "text": "a"}]}, 4, null]',
    ', {"role": "user", "amount": ****4}]',
    ", NaN]",
    ",]",
    ",  ]",
    ", {]",
    '], {"role": "user", "content": "no list"}',
    "",
    "]",
    ", " + "[" * 101 + "]" * 101 + "]",
    ', {"role": "user", "content": "' + "x" * (256 * 1024) + '"}]',
]


@pytest.mark.parametrize("end", ENDS, ids=range(len(ENDS)))
def test_a_history_that_goes_on_is_read_as_if_it_stood_alone(end: str) -> None:
    read_messages('[{"role": "user", "content": "1"}, {"role": "user", "content": "2"}]')
    alone = read_messages(f"[{TURN}{end}")

    read_messages(f"[{TURN}]")

    assert read_messages(f"[{TURN}{end}") == alone


def test_a_history_that_goes_on_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("processors.shapes.messages.MAX_MESSAGES", 3)
    read_messages(f"[{TURN}]")

    assert len(read_messages(f"[{TURN}, {TURN}]")) == 3
    assert len(read_messages(f"[{TURN}, {TURN}, {TURN}]")) == 3


@pytest.mark.parametrize("further", ["", f", {TURN}"])
def test_what_a_reader_changes_in_a_message_is_its_own(further: str) -> None:
    first, *_ = read_messages(f"[{TURN}]")
    first.responses = []
    first.text = "changed"

    assert read_messages(f"[{TURN}{further}]")[0].text == "Where is it?"


def test_only_the_end_of_a_history_that_goes_on_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []

    def noted(text: str) -> JsonValue:
        parsed.append(len(text))
        value: JsonValue = json.loads(text)
        return value

    monkeypatch.setattr("processors.shapes.messages.parse_json", noted)
    for turns in range(1, 51):
        read_messages(f"[{', '.join([TURN] * turns)}]")

    assert max(parsed) <= len(f"[{TURN}] ")
