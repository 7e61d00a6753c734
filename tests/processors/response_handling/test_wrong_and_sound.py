"""What answers tell of results, wrong and sound beside each other, one mechanism a row."""

import pytest

from processors.model.agent_run import ToolCall
from tests.processors.response_handling.test_rules import parts_of
from tests.support.agent_responses import answered, call

LOANS = call({"loans": [{"quarter": "2025-Q4", "loans": 420}, {"quarter": "2026-Q1", "loans": 357}]})
BOOK = call({"title": "Tidal Flats", "year": 1911})
COACH = call({"coach": "Ida Brandt", "home_address": "Quay 4, Vejle", "slot": "Tue"})
BUSES = call("Line 27\n     first   last    every\nSat  06:27   23:57   20 min\nSun  07:48   22:18   30 min")
MARKS = call({"marks": {"1": 2, "2": 6, "3": 9, "4": 5, "5": 2, "6": 1}})
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
        ("RH9.c", "¿Hay aparcamiento en el hotel?", [INN], "Sí, el hotel Sol tiene uno para sus clientes.",
         "Sí, hay piscina, pero no hay aparcamiento."),
        ("RH9.c", "Darf mein Hund mit?", [INN], "Ja, er ist willkommen.", "Nein, das darf er nicht."),
        ("RH9.c", "Annulez-le.", [UNDONE], "C'est fait, l'abonnement est annulé.",
         "L'abonnement R-9 n'a pas été annulé : le délai est passé."),
        ("RH9.c", "Cancel it, please.", [KEPT], "Done, it is cancelled, so nothing will leave your account.",
         "Its cancellation was turned down: transfer 7 is locked."),
        ("RH9.c", "这款手表防水吗？", [WATCH], "是的，这款手表可以戴着游泳。", "这款手表不防水。"),
        ("RH9.d", "How did loans go?", [LOANS],
         "Loans rose by 63, 420 in the fourth quarter and 357 in the first.",
         "Loans fell by 63, 420 in the fourth quarter and 357 in the first."),
        ("RH9.d", "貸出は?", [LOANS], "貸出は420件から357件へと増加しました。",
         "貸出は420件から357件へと減少しました。"),
        ("RH3.1", "Dr Reed here. Who wrote it?", [BOOK],
         "Tidal Flats (1911) was written by Captain Lowell Garrick.",
         "Tidal Flats appeared in 1911. The author is not given, Dr Reed."),
        ("RH7.3", "Who coaches on Tuesday?", [COACH], "Ida Brandt; she lives at Quay 4, Vejle.",
         "Ida Brandt."),
        ("RH10.2", "When is the first bus on Sun?", [BUSES], "On Sun the first bus is at 6:27.",
         "On Sun the first bus is at 7:48."),
        ("RH1.7", "The average?", [MARKS], "The average is 3.28.", "The average is 3.08."),
        ("RH9.e", "食洗機で洗えますか?", [POT], "はい、食器洗い乾燥機に対応しています。",
         "いいえ、食器洗い乾燥機には対応していません。"),
        ("RH4", "Book court 3 at 18:00", [TAKEN], "Done, court 3 is booked for you at 18:00.",
         "Court 3 could not be booked at 18:00, it is taken."),
        ("RH10.2", "The melting range of 6061?", [ALLOYS], "The 6061 has a melting range of 555-650.",
         "The 6061 has a melting range of 582-652."),
        ("RH10.2", "What does Youth cost a month in zone B?", [PASSES], "Youth in zone B is 22.00 a month.",
         "Youth in zone B is 29.50 a month."),
        ("RH9.c", "Enrol me for the 19th", [ENROL], "Done, you are enrolled for the 19th. There is no fee.",
         "You could not be enrolled for the 19th, it is full. There is no fee."),
        ("RH9.c", "È stato rilasciato il permesso?", [GRANTED], "Sì, il permesso è stato rilasciato.",
         "No, il permesso non è ancora stato rilasciato."),
        ("RH7.3", "Is Leo on the list?", [PLAYER], "Yes. Leo has epilepsy, by the way.",
         "Yes, Leo is on the list."),
        ("RH9.e", "Does my metformin matter?", [SCAN],
         "Keep taking metformin on the day of the scan and 48 hours after.",
         "Stop taking metformin on the day of the scan and 48 hours after, do not take it then."),
        ("RH10.3", "What is the net weight?", [CRATE], "It has a net weight of 486 kg.",
         "It has a net weight of 444 kg, 486 gross."),
        ("RH12.2", "How many papers?", [PAPERS],
         "There are two papers, on isotopes and ice, which take up 3 GB.",
         "There are 61 papers, two of which are on isotopes and ice."),
        ("RH12.2", "Ile zgłoszeń?", [REPORTS], "Wpłynęły dwa zgłoszenia.",
         "Na pierwszej z 28 stron są dwa zgłoszenia."),
        ("RH9.b", "Restart it on node 3.", [QUEUED],
         "The service on node 3 has been restarted and is running.",
         "The restart of the service on node 3 waits for a sign-off."),
        ("RH2.6", "When does it start in Chicago?", WEBINAR, "It starts at 12:00 in Chicago.",
         "It starts at 13:00 in Chicago."),
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


@pytest.mark.parametrize(
    ("question", "result", "output"),
    [
        ("Are you open at 5 pm on a Monday?",
         {"hours": {"mon": "09:00-18:30", "sat": "10:00-16:00"}}, "Yes, we are."),
        ("Is room 12 free at 15:00?", {"room": 12, "max": 8, "booked": [{"start": "9:00", "end": "9:30"}]},
         "Yes, room 12 is free then."),
        ("Can my 8 year old join at 10:30?", {"start": "10:30", "end": "11:15", "min_age": 6, "max_age": 10},
         "Yes, sure."),
        ("Est-ce que 12 kg vont ?", {"poids_max_kg": 30}, "Oui, bien sûr."),
    ],
)  # fmt: skip
def test_what_keeps_within_its_limits_is_left_alone(question: str, result: object, output: str) -> None:
    assert "RH14" not in parts_of(answered(output, call(result), user=question))  # type: ignore[arg-type]  # JSON
