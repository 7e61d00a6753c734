"""What answers tell of results, wrong and sound beside each other, one mechanism a row."""

import pytest

from processors.model.agent_run import ToolCall
from tests.processors.response_handling.test_rules import parts_of
from tests.support.agent_responses import answered, call

LOANS = call({"loans": [{"quarter": "2025-Q4", "loans": 420}, {"quarter": "2026-Q1", "loans": 357}]})
BOOK = call({"title": "Tidal Flats", "year": 1911})
COACH = call({"coach": "Ida Brandt", "home_address": "Quay 4, Vejle", "slot": "Tue"})
BUSES = call("Line 27\n     first   last    every\nSat  06:27   23:57   20 min\nSun  07:48   22:18   30 min")
SALE = call({"price": 318000, "loan": 171300, "legal": 1450, "agent": 5724})
POT = call("本製品はIHに対応。食器洗い乾燥機には対応していません。")
TAKEN = call(
    {"ok": False, "code": "COURT_TAKEN", "court": 3, "free": [{"court": 5, "from": "18:00"}]}, at="18:00"
)
ALLOYS = call("alloy | melting\n6061 | 582-652\n6082 | 555-650")
PASSES = call([
    {"pass": "Youth", "zone": "A", "month": 22.0}, {"pass": "Youth", "zone": "B", "month": 29.5},
    {"pass": "Adult", "zone": "A", "month": 38.0}, {"pass": "Adult", "zone": "B", "month": 49.0},
])  # fmt: skip
ENROL = call({"accepted": False, "reason": "FULL", "fee": 0}, name="enrol")
GRANTED = call({"pratica": "P-1", "rilascio": None, "presentata": "2026-08-31"})
PLAYER = call({"name": "Leo", "registered": True, "medical": "epilepsy, takes valproate"})
SCAN = call("Drink water. Do not take metformin on the day of the scan or for 48 hours afterwards.")
CRATE = call({"crate": 14, "weight": {"gross_kg": 486.0, "tare_kg": 42.0, "net_kg": 444.0}})
REPORTS = call({"strona": 1, "stron": 28, "razem": 139, "zgloszenia": [{"nr": "Z-1"}, {"nr": "Z-2"}]})
PAPERS = call({"hits": {"total": 61, "items": [{"t": "Isotopes", "gb": 3}, {"t": "Ice", "gb": 1}]}})
QUEUED = call({"node": 3, "status": "needs_signoff"}, name="restart", node=3)
WEBINAR = [
    call({"start": "2026-07-08T18:00:00Z"}),
    call({"city": "Chicago", "utc_offset": "-05:00"}, name="tz"),
]
OSLO = call({"moves": [
    {"date": "2025-09-02", "to": "Oslo", "type": "out"},
    {"date": "2026-02-11", "to": "Store", "type": "back"},
]})  # fmt: skip
INN = call({"inn": "Sol", "parking": False, "pool": True, "pets": False})
UNDONE = call({"ref": "R-9", "annulee": False, "motif": "DELAI"}, name="annuler_abonnement")
KEPT = call({"id": 7, "cancelled": False, "reason": "LOCKED"}, name="cancel_transfer")
WATCH = call({"model": "W1", "waterproof": False, "gps": True})


@pytest.mark.parametrize(
    ("rule", "question", "calls", "wrong", "sound"),
    [
        ("RH4", "Book court 3 at 18:00", [TAKEN], "Done, court 3 is booked for you at 18:00.",
         "Court 3 could not be booked at 18:00, it is taken."),
    ],
)  # fmt: skip
def test_a_wrong_answer_is_found_and_a_sound_one_beside_it_is_left_alone(
    rule: str, question: str, calls: list[ToolCall], wrong: str, sound: str
) -> None:
    assert rule in parts_of(answered(wrong, *calls, user=question))
    assert parts_of(answered(sound, *calls, user=question)) <= {"RH8"}


@pytest.mark.parametrize(
    ("question", "calls", "output"),
    [
        (
            "What is left?",
            [SALE],
            "Of 318,000 go 171,300 for the loan, 1,450 and 5,724, which leaves 139,526.",
        ),
        ("Ile zapłacę?", [call({"rata": 324.48, "razem": 1297.92})], "Zapłaci Pan łącznie 1297,92 zł."),
        ("Is it in Oslo?", [OSLO], "No, it came back on 11 February 2026 after five months in Oslo."),
    ],
)
def test_a_sound_answer_that_looks_wrong_is_left_alone(
    question: str, calls: list[ToolCall], output: str
) -> None:
    assert parts_of(answered(output, *calls, user=question)) == set()


def test_a_call_that_a_server_failed_may_be_made_again() -> None:
    failed = call(None, name="acl", path="/d", error="HTTP 500: unexpected EOF")
    run = answered("I could not read the permissions, the service failed twice.", failed, failed)

    assert "RH5" not in parts_of(run)
