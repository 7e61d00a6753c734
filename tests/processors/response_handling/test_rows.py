"""Rules RH10 and RH1.5: values told of another row, and counts of rows."""

import pytest

from processors.evaluators.tool_response_handling import ToolResponseHandling, ToolResponseHandlingConfig
from processors.model.agent_run import ToolCall
from processors.model.evaluation_result import Score
from processors.model.evaluator import RunFacts
from tests.support.agent_responses import answered, call

DOGS = call(
    [
        {"name": "Biscuit Brown", "breed": "Beagle", "kg": 11.4, "box": "K2", "vet": "Dr. Imre Szabo"},
        {"name": "Juno Marsh", "breed": "Collie", "kg": 19.8, "box": "K5", "vet": "Dr. Ada Rowe"},
        {"name": "Otto Klein", "breed": "Pug", "kg": 8.2, "box": "K9", "vet": "Dr. Lin Mei"},
    ],
    name="kennel",
)
FERRIES = call(
    [
        {"dep": "07:15", "to": "East Pier", "quay": "3", "fare": 120},
        {"dep": "09:40", "to": "Holmen", "quay": "1", "fare": 145},
        {"dep": "12:05", "to": "West Pier", "quay": "7", "fare": 160},
    ],
    name="ferries",
)
ROTA = call(
    [
        {"day": "2026-06-01", "ward": "Cardiology", "nurse": "P. Quist"},
        {"day": "2026-06-01", "ward": "Oncology", "nurse": "T. Vance"},
        {"day": "2026-06-02", "ward": "Cardiology", "nurse": "B. Adeola"},
        {"day": "2026-06-02", "ward": "Oncology", "nurse": "M. Frey"},
    ],
    name="rota",
)
PLANS = call(
    {
        "starter": {"seats": 5, "price": 19.0},
        "team": {"seats": 25, "price": 79.0},
        "enterprise": {"seats": 500, "price": 349.0},
    },
    name="plans",
)
INKS = call("品名,在庫,棚\n青インク,45,A-3\n赤インク,130,B-1\n黒インク,275,C-7\n", name="zaiko")
ORDERS = call(
    [
        {"id": "A-1", "customer": "Lund", "lines": [{"sku": "P1", "qty": 318}]},
        {"id": "A-2", "customer": "Berg", "lines": [{"sku": "P3", "qty": 704}]},
    ],
    name="orders",
)
OSLO, KIEL = (
    call({"temp_c": temperature, "wind_kmh": wind}, name="weather", city=city)
    for city, temperature, wind in (("Oslo", 14.2, 31), ("Kiel", 21.6, 9))
)
SHIFTS = call(
    [
        {"name": "Noa Blum", "from": "08:00", "to": "16:00"},
        {"name": "Ravi Shah", "from": "12:00", "to": "20:00"},
    ],
    name="shifts",
)
RELEASES = call(
    [
        {"tag": "v2.1.0", "date": "2026-01-10"},
        {"tag": "v2.3.0", "date": "2026-05-20"},
        {"tag": "v2.2.0", "date": "2026-03-15"},
    ],
    name="releases",
)
TILES = call(
    [
        {"item": "Tile Loft 40x40", "eur": 31.9},
        {"item": "Tile Loft 60x60", "eur": 38.5},
        {"item": "Tile Slate 60x60", "eur": 44.25},
    ],
    name="tiles",
)
DAYS = call([{"day": f"2026-03-0{n}", "max": high} for n, high in enumerate((14.2, 17.9, 11.3, 12.6), 1)])
JOBS = call(
    "\n".join(
        f'{{"job": "j{n}", "state": "{state}"}}'
        for n, state in enumerate(["queued", "running", "queued", "queued", "done", "running", "done"])
    ),
    name="list_jobs",
)
BEDS = call([{"cama": n, "estado": s} for n, s in enumerate(["libre", "ocupada", "libre", "libre"], 41)])
LATE = call([{"who": f"w{n}", "late": n < 2} for n in range(5)], name="shifts")


def found(answer: str, calls: list[ToolCall], question: str = "Go on") -> set[str]:
    evaluator = ToolResponseHandling(ToolResponseHandlingConfig(gating="all"))
    score = evaluator.evaluate(answered(answer, *calls, user=question), RunFacts())
    assert isinstance(score, Score)
    violations = score.details["violations"]
    assert isinstance(violations, list)
    return {str(violation["check"]) for violation in violations if isinstance(violation, dict)}


@pytest.mark.parametrize(
    ("rule", "answer", "calls"),
    [
        ("RH10.2", "Juno weighs 8.2 kg at the moment.", [DOGS]),
        ("RH10.2", "Otto is a pug of 8.2 kg. His vet is Dr. Ada Rowe.", [DOGS]),
        ("RH10.2", "| Dog | Box |\n|---|---|\n| Biscuit | K2 |\n| Juno | K2 |\n| Otto | K9 |", [DOGS]),
        ("RH10.2", "The 09:40 to Holmen goes from quay 7.", [FERRIES]),
        ("RH10.2", "Holmen: €160 each way", [FERRIES]),
        ("RH10.2", "In Oncology, on June 2 it's B. Adeola.", [ROTA]),
        ("RH10.2", "The team plan costs $349 a month.", [PLANS]),
        ("RH10.2", "Lund ordered 704 pieces.", [ORDERS]),
        ("RH10.2", "赤インクの在庫は275本です。", [INKS]),
        ("RH10.2", "Loft in 60x60 comes to €44.25.", [TILES]),
        ("RH10.2", "It is 14.2°C in Kiel.", [OSLO, KIEL]),
        ("RH10.1", "It is 21.6°C in Oslo and 14.2°C in Kiel.", [OSLO, KIEL]),
        ("RH10.1", "- Juno: box K9\n- Otto: box K5", [DOGS]),
    ],
)
def test_a_value_of_another_row_than_the_one_named_is_found(
    rule: str, answer: str, calls: list[ToolCall]
) -> None:
    assert rule in found(answer, calls)


@pytest.mark.parametrize(
    ("answer", "calls"),
    [
        ("Juno weighs 19.8 kg, more than twice as much as the pug with 8.2 kg.", [DOGS]),
        ("Otto is a pug of 8.2 kg. His vet is Dr. Lin Mei; Dr. Ada Rowe takes the collies.", [DOGS]),
        ("Juno is in good health. The lightest one is 8.2 kg.", [DOGS]),
        ("Of Juno, Biscuit and the others, the lightest is 8.2 kg.", [DOGS]),
        ("If Juno is too heavy for you, the smaller one weighs 8.2 kg.", [DOGS]),
        ("Rather than Juno, take the pug, which weighs 8.2 kg.", [DOGS]),
        ("Shall I move Juno to box K9?", [DOGS]),
        ("The 09:40 to Holmen costs 145, while the noon ferry is 160.", [FERRIES]),
        ("The 07:15 connects with the 12:05 to West Pier.", [FERRIES]),
        (
            "In Oncology, on June 1 it's T. Vance and on June 2 M. Frey; B. Adeola has Cardiology then.",
            [ROTA],
        ),
        ("The team plan costs $79 a month, $270 less than enterprise at $349.", [PLANS]),
        ("赤インクの在庫は130本です。黒インクは275本あります。", [INKS]),
        ("Loft in 60x60 comes to €38.50; in slate you would pay €44.25.", [TILES]),
        ("It is 14.2°C in Oslo and 21.6°C in Kiel.", [OSLO, KIEL]),
        ("Noa and Ravi overlap from 12:00 to 16:00.", [SHIFTS]),
        ("From v2.1.0 you can go straight to the release of 20 May 2026.", [RELEASES]),
        ("As of 4 March, the warmest day had 17.9 degrees.", [DAYS]),
        ("Since 3 March it has been cooler than at the peak of 17.9 degrees.", [DAYS]),
    ],
)
def test_values_of_rows_that_are_meant_otherwise_are_left_alone(answer: str, calls: list[ToolCall]) -> None:
    assert {"RH10.1", "RH10.2"}.isdisjoint(found(answer, calls))


def test_a_row_that_only_the_user_names_is_known() -> None:
    assert {"RH10.2"} == found("The box is K9.", [DOGS], "In which box is Juno?")
    assert not found("You are in box K9, next to Juno.", [DOGS], "I came with Otto. Which box do we have?")


@pytest.mark.parametrize(
    ("answer", "calls"),
    [
        ("Five jobs are queued.", [JOBS]),
        ("3 of the 7 jobs are running.", [JOBS]),
        ("Three of the seven aren't running.", [JOBS]),
        ("There are nine jobs in all.", [JOBS]),
        ("Dos de las cuatro camas están libres.", [BEDS]),
        ("Three of the five were late.", [LATE]),
    ],
)
def test_a_count_that_the_rows_do_not_give_is_found(answer: str, calls: list[ToolCall]) -> None:
    assert {"RH1.5"} == found(answer, calls)


@pytest.mark.parametrize(
    ("answer", "calls"),
    [
        ("Three jobs are queued, and two of the seven are running.", [JOBS]),
        ("There are seven jobs in all; two of them are done.", [JOBS]),
        ("Five of the seven aren't running.", [JOBS]),
        ("You can have at most nine jobs. Two queued jobs started before 14:30.", [JOBS]),
        ("Tres de las cuatro camas están libres.", [BEDS]),
        ("Two of the five were late, and one of the five was late on more than one day.", [LATE]),
    ],
)
def test_counts_that_may_be_right_are_left_alone(answer: str, calls: list[ToolCall]) -> None:
    assert "RH1.5" not in found(answer, calls)


def test_what_the_user_asks_for_is_no_count() -> None:
    assert "RH1.5" not in found("All five jobs are in.", [JOBS], "Please queue five jobs.")


ROOMS = call(
    {
        "zimmer": [
            {"name": "Alpenblick", "preis": 124, "bett": "Doppelbett"},
            {"name": "Seeblick", "preis": 158, "bett": "Kingsize"},
            {"name": "Gartenblick", "preis": 98, "bett": "Einzelbetten"},
        ]
    }
)
SHOPS = call(
    {
        "tiendas": [
            {"tienda": "Gran Vía", "ventas": 18420, "gerente": "Inés Soto"},
            {"tienda": "Chamberí", "ventas": 12910, "gerente": "Raúl Peña"},
            {"tienda": "Retiro", "ventas": 15230, "gerente": "Marta Gil"},
        ]
    }
)


@pytest.mark.parametrize(
    ("answer", "calls"),
    [
        ("Der Alpenblick kostet 158 € die Nacht und hat ein Doppelbett.", [ROOMS]),
        ("Im Gartenblick steht ein Kingsize-Bett.", [ROOMS]),
        ("La tienda de Chamberi la lleva Marta Gil.", [SHOPS]),
        ("En Retiro se vendieron 12.910 €.", [SHOPS]),
    ],
)
def test_rows_are_named_without_accents_and_in_other_forms(answer: str, calls: list[ToolCall]) -> None:
    assert "RH10.2" in found(answer, calls)


@pytest.mark.parametrize(
    ("answer", "calls"),
    [
        ("Statt Alpenblick ginge auch das günstigste Zimmer für 98 €.", [ROOMS]),
        ("Im Alpenblick schlafen Sie im Doppelbett; ein Kingsize hätten Sie für 158 €.", [ROOMS]),
        ("Das Zimmer Seeblick kostet 34 € mehr als das für 124 €.", [ROOMS]),
        ("Chamberí queda por debajo de los 15.230 € de la segunda tienda.", [SHOPS]),
        ("Gran Vía lidera; la segunda vendió 15.230 €.", [SHOPS]),
    ],
)
def test_what_is_told_of_rows_without_a_name_is_left_alone(answer: str, calls: list[ToolCall]) -> None:
    assert not found(answer, calls)
