import pytest
from google.protobuf import json_format
from google.rpc import code_pb2, error_details_pb2, status_pb2

from collector.errors import (
    Draining,
    MalformedRequest,
    Overloaded,
    Refusal,
    RequestTooLarge,
    Unauthenticated,
    UnsupportedRequest,
)
from collector.otlp.status import (
    MAX_MESSAGE_LENGTH,
    UNEXPECTED_ERROR_MESSAGE,
    error_status,
    method_not_allowed,
    no_such_path,
    no_such_service,
)


def _half() -> float:
    return 0.5


def _details(body: bytes) -> list[str]:
    return [detail.TypeName() for detail in status_pb2.Status.FromString(body).details]


@pytest.mark.parametrize(
    ("refusal", "code_name", "http_status"),
    [
        (MalformedRequest("m"), "INVALID_ARGUMENT", 400),
        (RequestTooLarge("m"), "RESOURCE_EXHAUSTED", 413),
        (UnsupportedRequest("m"), "UNIMPLEMENTED", 415),
        (Unauthenticated("m"), "UNAUTHENTICATED", 401),
    ],
)
def test_what_is_never_valid_has_a_final_code_and_no_retry_delay(
    refusal: Refusal, code_name: str, http_status: int
) -> None:
    status = error_status(refusal, _half)

    assert code_name == status.code_name
    assert http_status == status.http_status
    assert status.message == "m"
    assert status.retry_delay_seconds is None
    assert status.retry_after is None
    assert ["grpc-status-details-bin"] == [key for key, _ in status.grpc_trailers()]
    assert "google.rpc.RetryInfo" not in _details(status.to_protobuf())


@pytest.mark.parametrize("refusal", [Overloaded("Come back."), Draining("Come back.")])
def test_what_may_be_accepted_later_is_unavailable_and_says_when(refusal: Refusal) -> None:
    status = error_status(refusal, _half)

    assert status.code_name == "UNAVAILABLE"
    assert status.http_status == 503
    assert status.message == "Come back."
    assert status.retry_delay_seconds == 2.0
    assert status.retry_after == "2"


def test_both_trailers_carry_the_retry_delay() -> None:
    trailers = dict(error_status(Overloaded("m"), lambda: 0.25).grpc_trailers())

    bare = error_details_pb2.RetryInfo.FromString(trailers["google.rpc.retryinfo-bin"])
    rich = status_pb2.Status.FromString(trailers["grpc-status-details-bin"])
    packed = error_details_pb2.RetryInfo()
    assert rich.details[0].Unpack(packed)
    assert bare.retry_delay.ToMilliseconds() == 1500
    assert bare == packed
    assert code_pb2.UNAVAILABLE == rich.code


@pytest.mark.parametrize(("drawn", "header"), [(0.0, "1"), (0.5, "2"), (0.9999, "3")])
def test_the_retry_delay_spreads_from_one_to_three_seconds(drawn: float, header: str) -> None:
    status = error_status(Overloaded("m"), lambda: drawn)

    assert status.retry_delay_seconds is not None
    assert 1.0 <= status.retry_delay_seconds <= 3.0
    assert header == status.retry_after


def test_each_answer_draws_its_own_delay() -> None:
    draws = iter([0.0, 1.0])

    delays = [error_status(Draining("m"), lambda: next(draws)).retry_delay_seconds for _ in range(2)]

    assert delays == [1.0, 3.0]


@pytest.mark.parametrize(
    "error", [ValueError("secret"), KeyError("secret"), MemoryError(), Refusal("secret")]
)
def test_anything_unexpected_is_retryable_and_keeps_its_words_to_itself(error: Exception) -> None:
    status = error_status(error, _half)

    assert status.code_name == "UNAVAILABLE"
    assert status.http_status == 503
    assert UNEXPECTED_ERROR_MESSAGE == status.message
    assert status.retry_after == "2"


def test_bad_data_carries_a_bad_request_detail() -> None:
    status = status_pb2.Status.FromString(error_status(MalformedRequest("broken"), _half).to_protobuf())

    bad_request = error_details_pb2.BadRequest()
    assert status.details[0].Unpack(bad_request)
    assert bad_request.field_violations[0].description == "broken"
    assert status.message == "broken"


def test_json_and_protobuf_say_the_same() -> None:
    status = error_status(Overloaded("full"), _half)

    from_json = json_format.Parse(status.to_json(), status_pb2.Status())

    assert from_json == status_pb2.Status.FromString(status.to_protobuf())
    assert b"\n" not in status.to_json()


def test_long_messages_are_cut_for_the_trailers() -> None:
    status = error_status(MalformedRequest("x" * 100_000), _half)

    assert len(status.message) == MAX_MESSAGE_LENGTH
    assert sum(len(value) for _, value in status.grpc_trailers()) < 4096


def test_a_refusal_without_words_says_its_kind() -> None:
    assert error_status(MalformedRequest(), _half).message == "MalformedRequest"


def test_requests_for_something_else_are_final() -> None:
    path = no_such_path("/v1/profiles")
    method = method_not_allowed("GET")
    service = no_such_service("/a.B/C")

    assert (
        404,
        "NOT_FOUND",
        "There is no /v1/profiles here; send traces to /v1/traces and logs to /v1/logs.",
    ) == (
        path.http_status,
        path.code_name,
        path.message,
    )
    assert (405, "GET is not allowed; export requests are sent by POST.") == (
        method.http_status,
        method.message,
    )
    assert ("UNIMPLEMENTED", "/a.B/C is not supported; traces and logs are.") == (
        service.code_name,
        service.message,
    )
    assert [None, None, None] == [answer.retry_after for answer in (path, method, service)]
