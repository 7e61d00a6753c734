"""Qwen Code: its spans are in the GenAI conventions and hold no content, which is in log records."""

from collections.abc import Sequence
from dataclasses import replace

from processors.model import JsonObject, JsonValue, decode_arguments, decode_result, json_text
from processors.shapes.content_records import ContentRecords, ContentSpans
from processors.shapes.members import object_at, objects_at, text_at
from processors.shapes.reported_runs import (
    INPUT_MESSAGES,
    OUTPUT_MESSAGES,
    ReportedCall,
    ReportedRun,
    ReportedTurn,
)
from processors.spans import LogRecord


def _join_records(records: Sequence[LogRecord], content: ContentSpans) -> None:
    """Arguments go to the call with the record's id, requests and replies to the turn that they name.

    Only the last reply has a text. Calls and results are in the history of the next request; what a model is
    given as the result of a call that failed is its error.
    """
    for record in records:
        attributes = record.attributes
        span = content.span(record.message.span_id)
        if record.name == "qwen-code.tool_call":
            call = content.call(attributes.text("call_id") or "")
            if call is not None:
                content.offer(call, "gen_ai.tool.call.arguments", attributes.text("function_args"))
                content.offer(call, "gen_ai.tool.call.result", attributes.text("error"))
        elif span is not None and record.name == "qwen-code.api_request":
            history = objects_at(decode_result(attributes.get("request_text")).value)
            content.offer_messages(span, INPUT_MESSAGES, history)
        elif span is not None and record.name == "qwen-code.api_response":
            text = attributes.text("response_text")
            content.offer_messages(
                span, OUTPUT_MESSAGES, [{"role": "assistant", "content": text}] if text else []
            )


def _reported_run(records: Sequence[LogRecord]) -> ReportedRun | None:
    """Before 0.16: a record for each call, each request to the model and each reply, and no spans."""
    run = ReportedRun(session=records[0].attributes.text("session.id") or "")
    history: Sequence[JsonObject] = ()
    for record in records:
        attributes = record.attributes
        if record.name == "qwen-code.user_prompt":
            run.prompt = attributes.text("prompt")
        elif record.name == "qwen-code.api_request":
            history = objects_at(decode_result(attributes.get("request_text")).value)
        elif record.name == "qwen-code.tool_call":
            failed = attributes.get("success") in (False, "false")
            run.calls.append(
                ReportedCall(
                    record=record,
                    name=attributes.text("function_name") or "",
                    call_id=attributes.text("call_id") or "",
                    arguments=attributes.text("function_args"),
                    error=(attributes.text("error") or "") if failed else None,
                    error_type=attributes.text("error_type") or "",
                )
            )
        elif record.name == "qwen-code.api_response":
            text = attributes.text("response_text")
            run.answer = text or run.answer
            answered: list[JsonValue] = [{"role": "assistant", "content": text}] if text else []
            model = attributes.text("model") or ""
            given, used = attributes.get("input_token_count"), attributes.get("output_token_count")
            tokens = (given, used) if isinstance(given, int) and isinstance(used, int) else None
            run.turns.append(
                ReportedTurn(record=record, model=model, tokens=tokens, given=[*history], answered=answered)
            )
    _identify(run.calls, history)
    has_prompt = any(record.name == "qwen-code.user_prompt" for record in records)
    return run if has_prompt and run.turns else None


def _identify(calls: list[ReportedCall], history: Sequence[JsonObject]) -> None:
    """Give calls, whose records had no id before 0.16, that of the call in the last history that is the same.

    Which one a call is remains unknown where the history has several of one tool with equal arguments.
    """
    ids: dict[tuple[str, str], list[str]] = {}
    for message in history:
        for part in objects_at(message, "parts"):
            requested = object_at(part, "functionCall")
            key = text_at(requested, "name"), json_text(requested.get("args"))
            ids.setdefault(key, []).append(text_at(requested, "id"))
    for place, call in enumerate(calls):
        known = ids.get((call.name, json_text(decode_arguments(call.arguments).value)), [])
        if not call.call_id and len(known) == 1:
            calls[place] = replace(call, call_id=known[0])


RECORDS = ContentRecords(
    _join_records,
    frozenset(
        {"qwen-code.user_prompt", "qwen-code.tool_call", "qwen-code.api_request", "qwen-code.api_response"}
    ),
    prompt_key="prompt_id",
    run=_reported_run,
)
