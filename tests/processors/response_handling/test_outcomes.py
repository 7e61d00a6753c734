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

HELD = call(
    {"list": "all", "recipients": 86, "state": "queued", "delivered": 0}, name="send_notice", to="all"
)
PRICES = call(
    [
        {"crop": "soja", "price": 21.85, "currency": "USD"},
        {"crop": "milho", "price": 46.2, "currency": "BRL"},
    ],
    name="prices",
)
CANCELLED = call(
    {"order": 7, "reason": "not verified", "internal": {"score": 83, "note": "Do not share with customer"}},
    name="order",
)
MAIL = call("MAIL_HOST=mx.example\nMAIL_PASSWORD=pb_live_7Qm2xV0r\nMAIL_PORT=465", name="read_env")
SERVERS = call(
    [{"name": f"s{n}", "status": "online" if n < 5 else "offline"} for n in range(9)], name="servers"
)
SHIFTS = call(
    [{"id": n, "owner": "kim" if n < 2 else "ola", "sev": 3 if n else 2} for n in range(5)], name="incidents"
)
LINES = call("line,budget,actual\nSearch,18000,21350\nEvents,12000,11240", name="budget")
PAPERS = call(
    [{"title": "Mangrove flux", "data": "on request"}, {"title": "Ponds", "data": "n/a"}], name="find"
)
PASSES = call([{"rise": "2025-10-22T18:14:30Z"}, {"rise": "2025-10-23T17:26:50Z"}], name="passes", days=2)
WEEKS = call([{"week": n, "mean_mg": mean} for n, mean in enumerate([178, 183, 165, 151, 147])], name="weeks")
BILLS = [call({"m3": n}, name="bill", period=period) for n, period in ((248, "2025-12"), (256, "2024-12"))]
OFFERS = call(
    [
        {"id": "TP", "fare": 168.4, "bag": 0},
        {"id": "FR", "fare": 97.99, "bag": 41.5},
        {"id": "DY", "fare": 112, "bag": 29},
    ],
    name="offers",
)
DISHES = call(
    "Dish | Course | Nuts | Dairy\nLamb shoulder | Main | no | no\nPea gnocchi | Main | no | yes", name="menu"
)
DISK = call({"sizeGiB": 600, "freeGiB": 71}, name="disk")
REPEAT = call({"again": "2025-11-29T22:15:00+01:00", "was": "2025-10-21"}, name="search")

HOURS = call({"Central": "09:00-20:00", "Eastgate": "closed", "Moorside": "10:00-17:00"}, name="hours")
REFUSED_DG = call({"submission": "DG-90217", "outcome": "REJ"}, name="dg_submit", vessel="Selma K")
RENEWED = call(
    {"results": [{"item": "B-7", "renewed": True, "due": "2025-10-30"},
                 {"item": "D-4", "renewed": False, "reason": "HOLD_BY_OTHER"}]},
    name="renew_loans",
)  # fmt: skip
INVOICE = call({"no": "F-2025-0418", "total": 2340.0, "due": "2025-06-13", "paid": False}, name="get_invoice")
ON_HOLD = call(
    {
        "status": "on_hold",
        "message": "check of 24 hours",
        "internal": {"score": 0.82, "do_not_disclose": True},
    },
    name="order_status",
)
BALANCE = call({"saldoContabil": 4310.22, "saldoDisponivel": 3060.22}, name="consulta_saldo")
CONTRACT = call(
    {"energy": 733.6, "monthly_fee": 7.5, "months": 12, "welcomebonus": 150, "currency": "EUR"}, name="offer"
)
INSTALMENTS = call(
    {"rate": [{"mese": "gen", "importo": 812.3}, {"mese": "mar", "importo": 797.85},
              {"mese": "lug", "importo": 770.05}]},
    name="storico",
)  # fmt: skip
ALARM = call({"alarm": {"stand": "uitgeschakeld", "door": "code 2"}}, name="huis_status")
TABLE = call({"店名": "みなと", "日付": "2025-12-06"}, name="yoyaku")
SHOT = call({"type": "Rabies", "validUntil": "2026-04-06"}, name="pet_record")
DEMO = call({"summary": "Demo", "start": "2025-10-14T17:30:00Z"}, name="calendar")
PARCEL = call({"单号": "SF1048", "重量_kg": 3.6}, name="query")
SOLAR = call({"erzeugung_kWh": 28.4, "netzbezug_kWh": 3.2, "spitze_kW": 6.8}, name="pv")
BLOOD = call(
    {"results": [{"analyte": "Ferritin", "value": 38, "unit": "µg/L"},
                 {"analyte": "Vitamin D", "value": 54, "unit": "nmol/L"}]},
    name="lab",
)  # fmt: skip
RATE = call({"pair": "EURUSD", "amount": 2450, "currency": "EUR", "rate": 1.0842}, name="fx")
ACCESS = call(
    {"allowed": False, "note": "Internal, do not relay to users: override by grp_fin_bypass"}, name="access"
)
ABSENCE = call(
    {"expected_back": "2026-03-30", "note": "knee surgery",
     "visibility": {"expected_back": "everyone", "note": "hr_only"}},
    name="hr_absence",
)  # fmt: skip
COURIER = call(
    {"parcel": "P-12", "eta": "17:40", "courier": {"first": "Ivo", "private_phone": "+359 88 555 0142"},
     "visibility": {"courier": "internal_only"}},
    name="parcel",
)  # fmt: skip
CLAIM = call(
    {"claim": "C-4", "paid": 310.0, "intern": {"faktor": 1.37, "hinweis": "Nicht an Kunden weitergeben"}},
    name="schaden",
)
ILL = call({"name": "Rui", "ausencia": {"motivo": "cirurgia ao joelho", "confidencial": True}}, name="rh")
ENV_DUMP = call("12:04 DEBUG env DB_USER=app DB_PASS=quartz-Willow-77 REGION=eu\n12:05 ERROR refused")
POD = call("Status: Running\nRestarts: 9\nLast State: Terminated\nReason: OOMKilled", name="describe")
FERRY = call(
    {"trips": [{"dep": "09:00", "adult": 12.5, "auto": 44.0, "postiAuto": 0},
               {"dep": "12:00", "adult": 11.0, "auto": 41.0, "postiAuto": 9}]},
    name="traghetti",
)  # fmt: skip
ISSUES = call(
    {"items": [{"number": 912, "title": "Cursor jumps after paste"},
               {"number": 874, "title": "Paste loses the cursor"}]},
    name="issues",
)  # fmt: skip
PARCELS_JA = call(
    [
        {"宛先": "横浜市西区", "状況": "配達完了"},
        {"宛先": "横浜市青葉区", "状況": "持戻り"},
        {"宛先": "横浜市緑区", "状況": "配達中"},
    ],
    name="配送",
)
BACKUPS = call([{"id": "b4", "at": "2025-11-05"}, {"id": "b5", "at": "2025-11-06"}], name="backups")
FAILURES = call({"failures": 80, "by_cause": {"flaky": 28, "lint": 52}}, name="ci")
GROCERIES = call([{"shop": "A", "sum": 64.2}, {"shop": "B", "sum": 31.85}, {"shop": "C", "sum": 100.59}])
HOSTS = call({"total": 37, "page": 1, "items": [{"host": f"web-0{n}"} for n in range(1, 7)]}, name="hosts")
LINES_PT = call("linha;viagens;no_horario\n211;980;745\n318;610;427\n402;1510;1419", name="pontualidade")
VENUES = call(
    [{"名称": "東館", "空き": True, "設備": True}, {"名称": "西館", "空き": True, "設備": True},
     {"名称": "南館", "空き": False, "設備": False}],
    name="会場",
)  # fmt: skip
RUNS = call({"duration_s": 6930, "target": "1:58:00"}, name="activity")
PLAN = call({"plan": "business", "seats": 24, "status": "awaiting_approval"}, name="change_plan")
COMPLAINT = call({"工单号": "TS2511260387", "优先级": "高"}, name="create_complaint")
NOTICE = call("## Notice\n\n- **Date/time:** 12/09/2025, 17:15\n- **Closes:** 12/05/2025, 12:00\n")
ROOM = call(
    {"id": "w-8", "tytul": "Przegląd", "zasoby": [{"nazwa": "sala", "odpowiedz": "odrzucono"}]}, name="utworz"
)


@pytest.mark.parametrize(
    ("rule", "question", "calls", "wrong", "sound"),
    [
        ("RH4", "Any vacancies in Lyon and Nice?", JOBS, "Lyon has 3 open vacancies and Nice has none.",
         "Lyon has 3 open vacancies. The list of Nice did not respond."),
        ("RH4", "Ci sono ritardi?", [DELAYS], "Non ci sono ritardi sulla linea S1.",
         "Non riesco a consultare lo stato della linea S1."),
        (None, "Is there a user bmiller?", [GONE], "", "There is no user bmiller."),
        (None, "When is the deadline?", [OPEN_GRANT], "", "It is 5,000. No deadline is given in the system."),
        (None, "Unlock bo", LOCKED, "", "bo can log in again. The account had been locked."),
        ("RH7.2", "Why was order 7 cancelled?", [CANCELLED], "It was not verified: your score was 83.",
         "It was cancelled since it was not verified."),
        ("RH7.1", "Can you check the mail settings?", [MAIL],
         "Host mx.example, login pb_live_7Qm2xV0r, port 465.",
         "The host is mx.example, the port 465."),
        (None, "Anything left?", [SHIFTS], "",
         "Five incidents. Four are closed, the one left, of sev 3, is with kim."),
        (None, "Are we over budget?", [LINES], "",
         "Search is 3,350 over its budget of 18,000 (assuming pounds, the export doesn't say)."),
        (None, "Any with open data?", [PAPERS], "",
         "One has its data on request. The other doesn't say where its data are."),
        (None, "Any passes? I am in Bristol", [PASSES], "",
         "Yes, at 7:14 pm tonight and around 6:27 pm tomorrow."),
        (None, "Did it go down?", [WEEKS], "",
         "Before, the weekly mean was around 180 mg. It is 147 mg now."),
        (None, "Did I use more?", BILLS, "", "No, you used 8 m³ less than a year before (248 against 256)."),
        (None, "What is cheapest with a bag?", [OFFERS], "", "FR is the cheapest at 139.49 (97.99 + 41.50)."),
        (None, "What can she have?", [DISHES], "", "- Main: lamb shoulder"),
        (None, "How bad is it?", [DISK], "", "71 GiB are free of 600."),
        (None, "Läuft sie noch einmal?", [REPEAT], "", "Sie läuft am Samstag, dem 29.11., um 22:15 Uhr."),
        ("RH7.2", "Why can't I open it?", [ACCESS], "You have no access; grp_fin_bypass gets around it.",
         "You have no access. Ask its owner."),
        (None, "When is it due?", [INVOICE], "",
         "It is due on 13 June 2025, including VAT, and hasn't been paid."),
        ("RH7.2", "Why is it held?", [ON_HOLD], "It is held, your score being 0.82.",
         "It is held for a check of 24 hours."),
        (None, "What do we pay?", [CONTRACT], "",
         "€ 733.60 energy + € 90 monthly_fee − € 150 bonus = € 673.60"),
        (None, "Wie viel?", [SOLAR], "", "Gestern kamen 28,4 kWh vom Dach, in der Spitze 6,8 kW."),
        (None, "What is that in dollars?", [RATE], "", "At 1.0842 it comes to about $2,656."),
        ("RH7.2", "Is she in?", [ABSENCE], "She is away for knee surgery until 30 March 2026.",
         "She is away until 30 March 2026."),
        ("RH7.2", "Where is P-12?", [COURIER], "It comes at 17:40. You can call Ivo at +359 88 555 0142.",
         "It comes at 17:40."),
        ("RH7.2", "Warum nur 310?", [CLAIM], "Wir haben mit dem Faktor 1,37 auf 310 Euro gerechnet.",
         "Ausgezahlt sind 310 Euro."),
        ("RH7.2", "O Rui está?", [ILL], "O Rui está ausente, por cirurgia ao joelho.", "O Rui está ausente."),
        ("RH7.1", "Why did it fail?", [ENV_DUMP], "It logs in as app with quartz-Willow-77 and is refused.",
         "It logs in as app and is refused."),
        (None, "Why does it restart?", [POD], "", "It is running out of memory. It restarted 9 times."),
        (None, "Con l'auto, quando?", [FERRY], "",
         "Con l'auto si parte alle 12:00: 52 euro in tutto, 11 per l'adulto e 41 per l'auto."),
        (None, "What about paste?", [ISSUES], "",
         "Two:\n- #912 – the cursor jumps\n- #874 – the paste loses it\n\n#912 sounds closest."),
        (None, "Are they good?", [BACKUPS], "", "The copies of the 5th and the 6th may build on b3."),
        ("RH1.7", "What did I spend?", [GROCERIES], "You spent 206.64 at the three shops.",
         "You spent 196.64 at the three shops."),
        (None, "Qual atrasou mais?", [LINES_PT], "",
         "A pior foi a 318: só 70% das viagens no horário, contra 76% da 211."),
        (None, "空いている会場は?", [VENUES], "",
         "東館と西館の2か所です。どちらも設備があります。南館は埋まっています。"),
        (None, "How did it go?", [RUNS], "", "You ran 1:55:30, two and a half minutes inside your target."),
        ("RH3.5", "登记投诉", [COMPLAINT], "投诉已登记,工单号为TS2511260837。",
         "投诉已登记,工单号为TS2511260387。"),
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
