from collector.buffer import FinishedTraces
from tests.support.held_spans import span_id, trace_id


def ids(*numbers: int) -> list[bytes]:
    return [span_id(number) for number in numbers]


def test_every_span_of_a_remembered_trace_is_known_and_others_are_new_once() -> None:
    finished = FinishedTraces()
    finished.add(trace_id(1), ids(*range(1000, 0, -3)))

    known = [number for number in range(1, 1001) if not finished.add_late_span(trace_id(1), span_id(number))]
    again = [number for number in range(1, 1001) if finished.add_late_span(trace_id(1), span_id(number))]

    assert list(range(1, 1001, 3)) == known
    assert [] == again


def test_an_id_that_spans_two_neighbours_is_not_taken_for_known() -> None:
    finished = FinishedTraces()
    finished.add(trace_id(1), [b"\x01" * 4 + b"\x02" * 4, b"\x03" * 4 + b"\x04" * 4])

    assert finished.add_late_span(trace_id(1), b"\x02" * 4 + b"\x03" * 4) is True


def test_the_oldest_traces_are_forgotten_beyond_the_limit() -> None:
    finished = FinishedTraces(max_traces=3)

    for number in range(5):
        finished.add(trace_id(number), ids(number))

    assert [False, False, True, True, True] == [trace_id(number) in finished for number in range(5)]
    assert 3 == len(finished)
    assert 3 * 8 == finished.id_bytes


def test_ids_of_the_oldest_are_forgotten_first_and_their_traces_are_still_known() -> None:
    finished = FinishedTraces(max_id_bytes=8 * 8)
    finished.add(trace_id(1), ids(1, 2, 3, 4))
    finished.add(trace_id(2), ids(1, 2, 3, 4))

    finished.add(trace_id(3), ids(1, 2))

    assert trace_id(1) in finished
    assert finished.add_late_span(trace_id(1), span_id(1)) is True
    assert finished.add_late_span(trace_id(1), span_id(1)) is True
    assert finished.add_late_span(trace_id(2), span_id(1)) is False
    assert 6 * 8 == finished.id_bytes


def test_late_spans_count_against_the_limit_of_ids() -> None:
    finished = FinishedTraces(max_traces=2, max_id_bytes=1000)
    finished.add(trace_id(1), ids(1))

    for number in range(10_000):
        finished.add_late_span(trace_id(1), span_id(number))

    assert trace_id(1) in finished
    assert 0 == finished.id_bytes


def test_forgetting_a_trace_forgets_its_late_spans() -> None:
    finished = FinishedTraces(max_traces=1)
    finished.add(trace_id(1), ids(1))
    finished.add_late_span(trace_id(1), span_id(2))

    finished.add(trace_id(2), ids(7))

    assert 8 == finished.id_bytes
