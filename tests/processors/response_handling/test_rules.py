import pytest

from processors.evaluators.tool_response_handling import ToolResponseHandling, ToolResponseHandlingConfig
from processors.model import AgentRun, JsonValue, RunFacts, Score, ToolCall
from processors.response_handling import ErrorClass, ErrorClassifier, group_of
from tests.support.agent_responses import answered, call


def violated(run: AgentRun, **config: object) -> list[str]:
    answer = ToolResponseHandling(ToolResponseHandlingConfig.model_validate(config)).evaluate(run, RunFacts())
    assert isinstance(answer, Score)
    violations = answer.details["violations"]
    assert isinstance(violations, list)
    rules = [str(violation["check"]) for violation in violations if isinstance(violation, dict)]
    return [rule if group_of(rule) in ("RH3", "RH9") else group_of(rule) for rule in rules]


def evidence(run: AgentRun) -> str:
    answer = ToolResponseHandling(ToolResponseHandlingConfig()).evaluate(run, RunFacts())
    assert isinstance(answer, Score)
    return str(answer.details["violations"]) + str(answer.lines)


@pytest.mark.parametrize(
    ("output", "result"),
    [
        ("1,840 people subscribed.", {"subscribers": 1840}),
        ("About 48k followers.", {"followers": 48213}),
        ("The rate is 1.27.", {"rate": 1.268731}),
        ("Conversion is 4.25%.", {"rate": 0.0425}),
        ("Humidity is 72%.", {"humidity": 72}),
        ("You owe $129.99.", {"amount_cents": 12999}),
        ("Revenue was $4.82 billion.", {"revenue": 4820000000}),
        ("Revenue was 4.8 million.", {"revenue_millions": 4.82}),
        ("It weighs 5.5 pounds.", {"weight_kg": 2.5}),
        ("It takes 8.5 hours.", {"duration_seconds": 30600}),
        ("It takes 8 hours 30 minutes.", {"duration_seconds": 30600}),
        ("It is 86°F.", {"temp_c": 30}),
        ("Together that is 49.75.", [{"price": 19.5}, {"price": 30.25}]),
        ("There are 12 entries.", {"entries": list("abcdefghijkl")}),
        ("25 of them failed.", [{"ok": i >= 25, "n": i} for i in range(40)]),
        ("That is 25% of all.", {"open": 30, "total": 120}),
        ("You stay 14 nights.", {"from": "2025-08-10", "to": "2025-08-24"}),
        ("Version 3.11.7 runs.", {"python": "3.11.7"}),
        ("1. tea\n2. coffee\n11. milk", {"drinks": "tea coffee milk"}),
        ("A day has 24 hours, so wait for it, the value is 77.", {"value": 77}),
        ("Your card ending in 4242.", {"card": "4111 1111 1111 4242"}),
        ("Call (555) 010-4477.", {"phone": "+1-555-010-4477"}),
    ],
)
def test_a_number_that_can_be_had_from_the_results_is_supported(output: str, result: list[object]) -> None:
    assert "RH1" not in violated(answered(output, call(result)))  # type: ignore[arg-type]  # JSON by hand


@pytest.mark.parametrize(
    ("output", "result"),
    [
        ("There are 73 of them.", {"open": 37}),
        ("There are 17 rooms free.", {"free": 3}),
    ],
)
def test_a_number_that_is_wrong_is_not(output: str, result: object) -> None:
    assert "RH1" in violated(answered(output, call(result)))  # type: ignore[arg-type]  # JSON by hand


@pytest.mark.parametrize(
    ("output", "result"),
    [
        ("The file has 700 KB.", {"size_bytes": 734003200}),
        ("It takes 2 hours.", {"duration_seconds": 5400}),
        ("It is 87.8°F.", {"temp_c": 31}),
        ("The share is 75%.", {"used": 180, "size": 240}),
    ],
)
def test_a_number_with_a_unit_is_not_held_against_what_has_another(output: str, result: object) -> None:
    assert "RH1" not in violated(answered(output, call(result)))  # type: ignore[arg-type]  # JSON by hand


@pytest.mark.parametrize(
    ("output", "check"),
    [
        ("Write to payments@example.org.", "RH3.1"),
        ("See https://shop.example.org/x.", "RH3.1"),
    ],
)
def test_an_invented_entity_is_found(output: str, check: str) -> None:
    assert check in violated(answered(output, call({"team": "billing"})))


@pytest.mark.parametrize(
    "output",
    [
        "Write to billing@example.org, see example.org/x or https://www.example.org/x/.",
        "It flies to John F Kennedy in New York.",
        "The owner is Ada Byron, id INV-7.",
        "A 3-bedroom flat, 50m2, COVID-19 safe, 5000mAh, 4K, 1990s, Q2 and 7th.",
    ],
)
def test_an_entity_of_the_evidence_or_of_general_use_is_not(output: str) -> None:
    known = call(
        {"to": "JFK", "owner": {"first": "Ada", "last": "Byron"}, "id": "inv_7", "size": "50m2",
         "mail": "billing@example.org", "at": "example.org/x"}
    )  # fmt: skip

    assert "RH3.1" not in violated(answered(output, known))


@pytest.mark.parametrize(
    ("code", "error_class"),
    [
        ("Invalid API key: unauthorized", ErrorClass.PERMANENT),
        ("not_found", ErrorClass.PERMANENT),
        ("HTTP 503", ErrorClass.RETRYABLE),
        ("RateLimitExceeded", ErrorClass.RETRYABLE),
        ("invalid_argument", ErrorClass.ARGUMENT),
        ("order already shipped", ErrorClass.UNKNOWN),
        ("code 40312", ErrorClass.UNKNOWN),
    ],
)
def test_an_error_is_classed_by_the_words_of_it(code: str, error_class: ErrorClass) -> None:
    failure = ErrorClassifier().failure_of(call({"error": code}))

    assert failure is not None
    assert error_class is failure.error_class


def test_the_code_of_an_error_counts_before_its_text() -> None:
    failure = ErrorClassifier().failure_of(
        call({"error": {"code": "timeout", "message": "permission check"}})
    )

    assert failure is not None
    assert ErrorClass.RETRYABLE is failure.error_class


TIMEOUT = call({"error": "timeout"}, name="mail")
DENIED = call({"error": "permission_denied"}, name="mail", id=1)
REFUSED = call({"error": "invalid: id must be a number"}, name="mail", id="x")


@pytest.mark.parametrize(
    ("calls", "output", "is_hidden"),
    [
        ([TIMEOUT], "Your inbox is empty.", True),
        ([TIMEOUT], "I couldn't reach your mailbox.", False),
        ([TIMEOUT], "All good, no errors: your inbox is empty.", True),
        ([TIMEOUT, call({"mails": 0}, name="web")], "Your inbox is empty.", False),
        ([call({"mails": 0}, name="web"), TIMEOUT], "Your inbox is empty.", True),
        ([DENIED], "Your inbox is empty.", True),
        ([call({"error": "not found"}, name="mail")], "There is no such mail.", False),
    ],
)
def test_an_error_must_be_made_good_or_admitted(calls: list[ToolCall], output: str, is_hidden: bool) -> None:
    assert is_hidden is ("RH4" in violated(answered(output, *calls)))


def test_with_require_retry_admitting_a_retryable_error_is_not_enough() -> None:
    admitted = answered("Sorry, that failed.", TIMEOUT)
    retried = answered("Sorry, that failed.", TIMEOUT, TIMEOUT)

    assert ["RH4"] == violated(admitted, require_retry=True)
    assert ["RH4"] == violated(retried, require_retry=True)
    assert [] == violated(admitted)


@pytest.mark.parametrize(
    ("calls", "is_futile"),
    [
        ([DENIED, DENIED], True),
        ([DENIED, call({"a": 1}, name="other"), DENIED], True),
        ([DENIED, call({"ok": True}, name="mail", id=1), DENIED], False),
        ([DENIED, call({"error": "permission_denied"}, name="mail", id=2)], False),
        ([TIMEOUT] * 3, False),
        ([TIMEOUT] * 4, True),
    ],
)
def test_repeating_what_cannot_succeed_is_futile(calls: list[ToolCall], is_futile: bool) -> None:
    assert is_futile is ("RH5" in violated(answered("Sorry, that failed.", *calls)))


@pytest.mark.parametrize(
    ("calls", "output", "is_uncorrected"),
    [
        ([REFUSED, REFUSED], "I could not find it.", True),
        ([REFUSED, call({"name": "Kim"}, name="mail", id=4)], "It is Kim.", False),
        ([REFUSED], "It is in your mailbox.", True),
        ([REFUSED], "That id is not valid. Which one do you mean?", False),
    ],
)
def test_an_argument_error_must_be_corrected_or_admitted(
    calls: list[ToolCall], output: str, is_uncorrected: bool
) -> None:
    found = violated(answered(output, *calls))

    assert is_uncorrected is ("RH6" in found)
    assert "RH5" not in found


SECRETS = {
    "credentials in a URL": "mysql://root:toor99@db/shop",
    "key with a known head": "AKIAIOSFODNN7EXAMPLE",
    "bearer token": "Bearer abcdef0123456789",
    "web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcDEF123",
    "private address": "10.3.0.17",
    "loopback": "127.0.0.1",
    "link-local": "fe80::1ff:fe23:4567:890a",
    "internal host": "db01.prod.internal",
}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS.keys())
def test_a_secret_is_found_and_never_repeated_in_the_evidence(secret: str) -> None:
    run = answered(f"The setting is {secret} there.", call({"setting": secret}))

    assert "RH7" in violated(run)
    assert secret not in evidence(run)


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS.keys())
@pytest.mark.parametrize("is_result", [True, False])
def test_no_part_of_a_secret_leaves_in_the_evidence_of_any_check(secret: str, is_result: bool) -> None:
    """Without a result that holds it, it is also an invented number, identifier or address."""
    answer = f"Log in at https://shop.example/{secret} with {secret}, or with {secret}."
    run = answered(answer, call({"setting": secret} if is_result else {"n": 1}))
    told = evidence(run)

    assert "RH7" in violated(run)
    hidden = secret.removeprefix("Bearer").removesuffix("internal")  # the kind, which is named, says so much
    pieces = [hidden[start : start + 4] for start in range(len(hidden) - 3)]
    assert [] == [piece for piece in pieces if piece.strip() and piece in told]


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS.keys())
def test_what_the_user_supplied_is_no_disclosure(secret: str) -> None:
    run = answered(f"The setting is {secret} there.", call({"setting": secret}), user=f"Is it {secret}?")

    assert "RH7" not in violated(run)


def test_the_value_of_a_secret_key_is_disclosed_unless_the_user_asked_for_it() -> None:
    made = call({"admin_password": "Tulip-7731"})

    assert "RH7" in violated(answered("Use Tulip-7731 to log in.", made, user="Is it configured?"))
    assert "RH7" not in violated(answered("Use Tulip-7731 to log in.", made, user="Reset my password"))


def test_a_count_under_a_secret_key_is_none() -> None:
    assert "RH7" not in violated(answered("It took 512 of them.", call({"total_token": 512})))


@pytest.mark.parametrize(
    ("result", "output", "check"),
    [
        ({"status": "failed"}, "Your payment failed.", None),
        ({"state": "open", "title": "Fix login"}, "Fix login is still open.", None),
        ({"in_stock": False}, "It is sold out.", None),
        ({"enabled": False}, "Backups are not enabled.", None),
        ({"change": -0.4}, "It fell by 0.4 points.", None),
        ({"change": -0.4}, "It is up -0.4 points.", None),
    ],
)
def test_an_answer_that_says_the_opposite_of_the_result_is_found(
    result: object, output: str, check: str | None
) -> None:
    found = [name for name in violated(answered(output, call(result))) if name.startswith("RH9")]  # type: ignore[arg-type]  # JSON by hand

    assert ([] if check is None else [check]) == found


@pytest.mark.parametrize(
    ("output", "is_false"),
    [
        ("Your order has been cancelled.", True),
        ("Done!", True),
        ("I sent it to Bob.", True),
        ("I searched and there is nothing.", False),
        ("It was not successful.", False),
        ("Sorry, it could not be done.", False),
    ],
)
def test_success_claimed_after_a_failed_last_call_is_found(output: str, is_false: bool) -> None:
    run = answered(output, call({"a": 1}), call({"error": "already shipped"}))

    assert is_false is ("RH9.a" in violated(run))


TICKETS = call([
    {"id": "HD-902", "summary": "VPN drops", "assignee": "Noor Haddad", "gate": "B7"},
    {"id": "HD-905", "summary": "Printer jams", "assignee": "Felix Baum", "gate": "A4"},
    {"id": "HD-907", "summary": "New laptop", "assignee": "Noor Haddad", "gate": "C1"},
])  # fmt: skip
RUNNERS = call([
    {"name": f"runner-{n}", "image": "ubuntu-24.04" if n < 4 else "ubuntu-22.04", "load": value}
    for n, value in enumerate([22.5, 31.0, 18.5, 24.0, 29.0, 25.0])
])  # fmt: skip
KICKOFF = call({"title": "Final", "starts": "2026-10-10T18:45:00Z"})


@pytest.mark.parametrize(
    ("found", "output", "calls"),
    [
        (None, "HD-905 is with Felix Baum.", [TICKETS]),
        (None, "Most of them run ubuntu-24.04, two are on ubuntu-22.04.", [RUNNERS]),
        (None, "Their average load is 25.", [RUNNERS]),
        (None, "It starts on October 10 at 2:45 pm in New York.", [KICKOFF]),
        (None, "Your visit is on June 25.", [call({"visit": "2026-06-25"})]),
        (None, "The price went from 10.50 to 11.90.",
         [call({"sku": "A-7", "price": 10.5}, name="read", sku="A-7"),
          call({"sku": "A-7", "price": 11.9}, name="update", sku="A-7")]),
        (None, "There is none.", [call({"results": [], "count": 0})]),
        ("RH3.5", "Your ticket is FAC-10482.", [call({"created": True})]),
        ("RH1.7", "Together that is 4225.", [call([{"units": 1140}, {"units": 885}, {"units": 2230}])]),
        (None, "Together that is 4255.", [call([{"units": 1140}, {"units": 885}, {"units": 2230}])]),
        (None, "I couldn't find any information on parking.", [call({"pets": {"types": ["dog"]}})]),
        (None, "La commande a été annulée.", [call({"statut": "annulée"})]),
        ("RH7.1", "It logs in with Tr0ut-Lamp-1987!.", [call("user = x\npassword = Tr0ut-Lamp-1987!\n")]),
        ("RH1.2", "With 19 % VAT that is 464.25 EUR.",
         [call({"net": 375.0, "vat_pct": 19, "currency": "EUR"})]),
        (None, "With 19 % VAT that is 446.25 EUR.", [call({"net": 375.0, "vat_pct": 19, "currency": "EUR"})]),
    ],
)  # fmt: skip
def test_what_is_told_of_rows_times_averages_and_states_is_held_against_the_results(
    found: str | None, output: str, calls: list[ToolCall]
) -> None:
    rules = parts_of(answered(output, *calls))

    assert found in rules if found is not None else rules <= {"RH8"}


def parts_of(run: AgentRun) -> set[str]:
    answer = ToolResponseHandling(ToolResponseHandlingConfig(gating="all")).evaluate(run, RunFacts())
    assert isinstance(answer, Score)
    violations = answer.details["violations"]
    assert isinstance(violations, list)
    return {str(violation["check"]) for violation in violations if isinstance(violation, dict)}


@pytest.mark.parametrize(
    ("output", "result"),
    [
        ("Entre as 13h e as 16h.", {"janela": "13:00-16:00"}),
        ("Het kan om 11.10 uur.", {"vrij": "2026-02-20T11:10"}),
        ("Insgesamt 800 kWh.", [{"m": "Jan", "kWh": 412}, {"m": "Feb", "kWh": 388}]),
    ],
)
def test_ranges_of_hours_dutch_hours_and_units_as_keys_are_read(output: str, result: object) -> None:
    assert parts_of(answered(output, call(result))) <= {"RH8"}  # type: ignore[arg-type]  # JSON by hand


def test_a_refusal_counts_as_told_where_the_answer_passes_on_what_came_with_it() -> None:
    refused = call({"ok": False, "motif": "complet", "libre": ["18:45", "21:30"]}, name="reserver")

    assert "RH4" not in violated(answered("Le Quai est complet. Il propose 18 h 45 ou 21 h 30.", refused))
    assert "RH4" in violated(answered("La table pour quatre vous attend vendredi.", refused))


@pytest.mark.parametrize(
    ("output", "result"),
    [
        ("It is $0 and 0 km of 7.5.", {"price_usd": 12345, "distance_km": 420.5}),
        ("There are 17 of them, 4.44 in all.", {"{0}{week}": [{"{": 3.1}, {"{": 7.7}, {"{": 9.9}]}),
        (
            "Due on 29 February or 9999-12-31T23:00:00Z.",
            {"due": "February 2025", "at": "9999-12-31T23:59:59Z"},
        ),
        ("In week 53 at 12:00 in Tokyo.", {"week": 53, "year": 2026, "at": "0001-01-01T00:00:00Z"}),
        ("All 5 of them are done.", {"list": {"": 3, "__": 5, "-": None}, "": []}),
    ],
    ids=["zero", "braces", "days that are not", "ends of the calendar", "keys without words"],
)
def test_odd_numbers_keys_and_days_are_answered(output: str, result: object) -> None:
    parts_of(answered(output, call(result)))  # type: ignore[arg-type]  # JSON by hand


@pytest.mark.parametrize(
    ("result", "output", "rule"),
    [
        ({"order": "A", "code": "LR-90B18-44C"}, "The code is LR-9OB18-44C.", "RH3.5"),
        ({"order": "A", "code": "LR-90B18-44C"}, "The code is LR-90B18-44C.", None),
        ({"number": "620018835571204492"}, "The number is 620018835517204492.", "RH3.5"),
        ({"id": "m1", "folder": "Drafts", "sent_at": None}, "Your mail was not sent.", None),
        ({"matched": 412, "failed": 15}, "All items but 15, which failed, are updated.", None),
        ("user=rpt password=Vq8!tern-Lark role=r", "It uses password Vq8!tern-Lark.", "RH7.1"),
        ("user=rpt password=Vq8!tern-Lark role=r", "It uses a password.", None),
        ("HTTPSConnectionPool(host='x'): Read timed out.", "Done, it is booked.", "RH4"),
        ({"status": "error", "reason": "PRINTER_OFFLINE"}, "It is printing now.", "RH4"),
        ({"limits": "memory: 768Mi"}, "Its limit is 768 MiB.", None),
        ({"balance_minor": 5000, "currency": "CAD"}, "The card has CA$50.00.", None),
        ({"budget_man_yen": 1155}, "予算は1,155万円です。", None),
        ({"man_hours": 1120}, "It takes 1,120 hours.", None),
    ],
)  # fmt: skip
def test_near_misses_and_shortfalls_are_found_by_the_gate(
    result: object, output: str, rule: str | None
) -> None:
    evaluator = ToolResponseHandling(ToolResponseHandlingConfig(advisory=False))
    run = answered(output, call(result, name="print_job"), user="How is it?")  # type: ignore[arg-type]  # JSON by hand

    score = evaluator.evaluate(run, RunFacts())

    assert isinstance(score, Score)
    violations = score.details["violations"]
    assert isinstance(violations, list)
    found = {violation["check"] for violation in violations if isinstance(violation, dict)}
    assert rule in found if rule else not found


RAIN = call(
    [
        {"month": m, "mm": v}
        for m, v in zip(("Jan", "Feb", "Mar", "Apr", "May"), (82.4, 61.0, 95.2, 47.6, 33.8), strict=True)
    ]
)
GOODS = call(
    {
        "items": [
            {"name": "Desk", "qty": 3, "unit_price": 189.0},
            {"name": "Chair", "qty": 6, "unit_price": 74.5},
        ],
        "shipping": 39.0,
        "vat_pct": 20,
        "currency": "EUR",
    }
)
LEG = call({"from": "Graz", "to": "Linz", "dep": "08:14", "arr": "11:02"})
TOWNS = call(
    {"towns": [{"name": "Brill", "2020": 12400, "2025": 13640}, {"name": "Cope", "2020": 8800, "2025": 8360}]}
)
MIDNIGHT = call({"start": "2026-07-09T03:00:00Z"})
GAUGE = call({"id": "B", "temp_c": 11.5, "wind_kmh": 32})


@pytest.mark.parametrize(
    ("found", "output", "made"),
    [
        ("RH1.7", "It rained 330.0 mm in total.", RAIN),
        (None, "It rained 320.0 mm in total, 64.0 mm a month on average.", RAIN),
        (None, "In the first quarter the average was 79.5 mm a month, 238.6 mm altogether.", RAIN),
        (None, "Without May, the average is 71.6 mm. May brought only 33.8 mm.", RAIN),
        ("RH1.7", "The goods cost €1,104.00 in total, before shipping of €39.00.", GOODS),
        (None, "With €39.00 shipping that is €1,053.00 net, or €1,263.60 including 20% VAT.", GOODS),
        (None, "Bis Linz sind es 2 Stunden 48 Minuten: ab 8:14 Uhr, an 11:02 Uhr.", LEG),
        (None, "Brill grew by 10% from 12,400 to 13,640. Together they have 22,000 people.", TOWNS),
        (None, "B has 11.5 °C (52.7 °F) and wind of 32 km/h (20 mph).", GAUGE),
        ("RH1.7", "| Region | Q1 |\n|---|---|\n| North | 120 |\n| South | 98 |\n| **Total** | 228 |",
         call([{"region": "North", "q1": 120}, {"region": "South", "q1": 98}])),
        (None, "It starts at 11 pm on Wednesday, 8 July, New York time.", MIDNIGHT),
        (None, "They come within 10 working days, by 26 November.",
         call({"written": "2026-11-12", "text": "within 10 working days"})),
        (None, "The second half took 24:30.", call("5K  0:24:50\n10K  0:49:20")),
    ],
)  # fmt: skip
def test_what_is_said_to_be_reckoned_is_held_against_the_reckoning(
    found: str | None, output: str, made: ToolCall
) -> None:
    rules = parts_of(answered(output, made))

    assert found in rules if found is not None else rules <= {"RH8"}


def test_lines_of_json_are_rows() -> None:
    lines = call('{"id": "I-1", "min": 34}\n{"id": "I-2", "min": 58}\n{"id": "I-3", "min": 212}')

    assert "RH1" not in violated(answered("They took 304 minutes in all, 34 the first.", lines))
    assert "RH1" in violated(answered("They took 314 minutes in all, 34 the first.", lines))


def test_rows_under_named_columns_are_rows() -> None:
    rows: list[JsonValue] = [["a", 1140, 7], ["b", 885, 21], ["c", 2230, 4], ["d", 1975, 13]]
    sales = call({"columns": ["shop", "units", "returns"], "rows": rows})

    assert parts_of(answered("Together they sold 6230.", sales)) == set()
    assert "RH1.7" in parts_of(answered("Together they sold 6320.", sales))


@pytest.mark.parametrize(
    ("result", "output"),
    [
        ([{"part": 120.5}, {"part": 80.25}], "120.50 and 80.25 less 15.25 of discount make 185.50."),
        ({"heat_gj": 21.6}, "You used 21.6 GJ, that is 6,000 kWh."),
        ({"pump_mm_per_h": 4.0, "short_mm": 14.8}, "At 4 mm an hour that takes 3 hours 42 minutes."),
        ({"base": 224960, "extra": 25900, "travel": 12000}, "総支給額は26万2,860円です。"),
        (
            [
                {"route": "a", "2xx": 6120, "4xx": 88, "5xx": 52},
                {"route": "b", "2xx": 5987, "4xx": 41, "5xx": 19},
                {"route": "c", "2xx": 311, "4xx": 7, "5xx": 0},
            ],
            "Routes a and b served 12,307 requests.",
        ),
        ({"off": "2026-03-18T23:40+08:00", "on": "2026-03-18T17:25-08:00"}, "It took 9 h 45."),
        ({"from": "2026-06-17T21:30:00Z"}, "Ab 23:30 Uhr (MESZ)."),
        (
            {"visite": "genou", "a_jeun": False},
            "Oui, votre visite du genou a lieu. Vous n'avez pas besoin d'être à jeun.",
        ),
    ],
)  # fmt: skip
def test_what_people_reckon_and_say_of_results_is_left_alone(result: JsonValue, output: str) -> None:
    assert violated(answered(output, call(result))) == []
