"""Rule RH1.5: counts of rows that are named one by one, or of kinds that add up."""

import pytest

from processors.model import JsonValue
from tests.processors.response_handling.test_rows import found
from tests.support.agent_responses import call

SHELVES: JsonValue = {
    "shelves": [
        {"code": f"SH-10{n}", "state": state}
        for n, state in enumerate(("empty", "full", "empty", "empty", "full", "empty"), 1)
    ]
}
STUDENTS: JsonValue = [
    {"name": name, "passed": name not in ("Luca Bi", "Tom Ash")}
    for name in ("Ines Rota", "Luca Bi", "Omar Sy", "Petra Kos", "Rui Vaz", "Tom Ash", "Uma Rao")
]
BASKETS: JsonValue = {
    "paniers": [
        {"client": client, "etat": "préparé" if client in ("Besson", "Estève") else "livré"}
        for client in ("Aubry", "Besson", "Carlier", "Dumas", "Estève", "Fabre")
    ]
}
TASKS: JsonValue = {
    "tasks": [
        {"title": "backup", "due": "2026-03-01", "state": "open"},
        {"title": "audit", "due": "2026-05-01", "state": "open"},
        {"title": "rotate", "due": "2026-03-03", "state": "open"},
        {"title": "report", "due": "2026-06-01", "state": "done"},
        {"title": "review", "due": "2026-06-11", "state": "open"},
    ]
}
BIKES: JsonValue = {
    "bikes": [
        {"id": f"B-50{n}", "state": state}
        for n, state in enumerate(("貸出中", "返却済", "返却済", "貸出中", "返却済"), 1)
    ]
}


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ("Of the six shelves, two are full and four have nothing on them.", SHELVES),
        ("Four shelves have nothing on them; SH-101, SH-103 and SH-104 are near the door.", SHELVES),
        ("There are six shelves. I can reserve three for you.", SHELVES),
        ("Seven students sat the exam. Two failed, the other five passed.", STUDENTS),
        ("Seven took it, two of them for the second time. Five passed.", STUDENTS),
        ("De los siete alumnos, dos suspendieron y cinco aprobaron.", STUDENTS),
        ("Sur les six paniers, deux sont encore à expédier et quatre chez leur client.", BASKETS),
        ("Two open tasks were due in early March: backup and rotate.", TASKS),
        ("Of the five tasks four are open; two of these are due in March: backup and rotate.", TASKS),
        ("自転車は全5台で、貸出中は2台、残りの3台は返却済です。", BIKES),
    ],
)
def test_a_count_of_some_by_another_condition_is_left_alone(answer: str, result: JsonValue) -> None:
    assert "RH1.5" not in found(answer, [call(result)])
