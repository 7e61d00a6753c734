"""How things came out, told the other way round: each mechanism with a wrong answer and a sound one."""

import pytest

from processors.model.agent_run import AgentRun, ToolCall
from tests.processors.response_handling.test_rules import parts_of
from tests.support.agent_responses import answered, call

DOWN = "HTTP 503 Service Unavailable"
JOBS = [call({"open": 3}, name="jobs", city="Lyon"), call(None, name="jobs", city="Nice", error=DOWN)]
GONE = call(None, name="users_get", user="bmiller", error="404 user not found")
DELAYS = call(None, name="trains", line="S1", error="quota exceeded")
DRY = call({"mode": "preview", "would_merge": 14, "merged": 0}, name="merge")
UNSET = call({"apply": False, "renames": 212}, name="rename", apply=False)
LEAVE = call({"id": 7, "status": "needs_hr_signoff"}, name="leave", who="Ann")
REFUSED = call({"n": 1, "decision": "REFUS"}, name="loan", n=1)
SYNC = call({"total": 60, "synced": 52}, name="sync")
PROBES = call("north: PASS 12ms\neast: PASS 14ms\nwest: FAIL no route", name="probe")
MANAGER = call({"id": 1, "case_manager": None, "opened": "2026-01-02"}, name="case")
RECALLS = call({"model": "S2", "recalls": [], "checked": "2026-01-01"}, name="recalls")
GRANT = call({"grant": "Arts", "deadline": "2026-08-01", "amount": 5000}, name="grant")
OPEN_GRANT = call({"grant": "Arts", "deadline": None, "amount": 5000}, name="grant")
GATES = [call({"gate": "B4"}, name="gate", flight="X1"), call({"gate": "C9"}, name="gate", flight="X1")]
SLOT = call({"id": 1, "time": "14:20"}, name="update_slot", id=1, time="14:00")
LOCKED = [
    call({"login": "bo", "state": "LOCKED"}, name="find_user", login="bo"),
    call({"login": "bo", "state": "ACTIVE"}, name="unlock_user", login="bo"),
]
RENT = call({"rent": {"2025-01": 900, "2025-02": 855}}, name="rent")
MEMBERS = call({"members": 1320, "previous_year": {"members": 1200}}, name="members")
PAGES = call({"users": ["Ann", "Bo", "Cy"], "page": 1, "pages": 4}, name="users")


@pytest.mark.parametrize(
    ("rule", "question", "calls", "wrong", "sound"),
    [
        ("RH4", "Any vacancies in Lyon and Nice?", JOBS, "Lyon has 3 open vacancies and Nice has none.",
         "Lyon has 3 open vacancies. The list of Nice did not respond."),
        ("RH4", "Ci sono ritardi?", [DELAYS], "Non ci sono ritardi sulla linea S1.",
         "Non riesco a consultare lo stato della linea S1."),
        (None, "Is there a user bmiller?", [GONE], "", "There is no user bmiller."),
        ("RH12.3", "Merge the duplicates", [DRY], "I merged 14 duplicates.",
         "14 duplicates would be merged."),
        ("RH12.3", "Rename the photos", [UNSET], "All set, 212 photos have new names.",
         "212 photos are found. Shall I rename them?"),
        ("RH9.b", "Approve the leave of Ann", [LEAVE], "The leave of Ann has been approved.",
         "The leave of Ann is filed and waits for HR."),
        ("RH9.b", "Mon prêt est accordé ?", [REFUSED], "Oui, votre prêt est accordé.",
         "Non, votre prêt est refusé."),
        ("RH12.1", "Sync them", [SYNC], "All 60 products have been synced.",
         "52 of all 60 products have been synced."),
        ("RH12.1", "Did every probe pass?", [PROBES], "Yes, every probe passed.", "All but west passed."),
        ("RH12.5", "Who is my manager?", [MANAGER], "Your case manager is Dana Whitlock.",
         "No case manager is named."),
        ("RH12.8", "Any recalls for my stove?", [RECALLS], "There is one recall for the S2.",
         "There are no recalls for the S2."),
        ("RH13", "When is the deadline?", [GRANT], "It is 5,000. No deadline is given in the system.",
         "It is 5,000, with a deadline on 1 August 2026."),
        (None, "When is the deadline?", [OPEN_GRANT], "", "It is 5,000. No deadline is given in the system."),
        ("RH12.4", "Check again", GATES, "It leaves from gate B4.", "The gate changed from B4 to C9."),
        ("RH12.4", "Move my slot to 14:00", [SLOT], "Your slot is at 14:00.",
         "14:00 was taken, so your slot is at 14:20."),
        (None, "Unlock bo", LOCKED, "", "bo can log in again. The account had been locked."),
        ("RH9.d", "How did rent move?", [RENT], "Rent went up by 5% to 855.", "Rent went down by 5% to 855."),
        ("RH9.d", "And members?", [MEMBERS], "Members fell by 120 to 1,320.",
         "Members rose by 120 to 1,320."),
        ("RH12.2", "Who is left?", [PAGES], "All of them: Ann, Bo and Cy, so 3.",
         "On the first page: Ann, Bo and Cy."),
    ],
)  # fmt: skip
def test_an_outcome_told_the_other_way_round_is_found_and_a_sound_answer_is_left_alone(
    rule: str | None, question: str, calls: list[ToolCall], wrong: str, sound: str
) -> None:
    def found(output: str) -> set[str]:
        run: AgentRun = answered(output, *calls, user=question)
        return parts_of(run)

    assert rule is None or rule in found(wrong)
    assert not found(sound)
