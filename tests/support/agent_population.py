"""Scripted agents that behave well in many ways: retries, parallel calls, optional tools, other words.

Every run is a line of a `*.runs.jsonl` file. The same seed gives the same runs.
"""

import random
from collections.abc import Callable
from typing import Any

Line = dict[str, Any]


class _Script:
    """One run under way."""

    def __init__(self, agent: str, rng: random.Random, text: str) -> None:
        self.rng = rng
        self.line: Line = {
            "agent": {"name": agent},
            "trace_id": f"{rng.getrandbits(128) | 1:032x}",
            "span_id": f"{rng.getrandbits(64) | 1:016x}",
            "input": text,
            "tool_calls": [],
        }
        self.seconds = rng.uniform(1, 3)
        self.tokens = rng.randint(300, 500)
        self._group = 0

    def call(
        self, name: str, arguments: Any, result: Any, *, failing: float = 0.0, group: int | None = None
    ) -> Any:
        """A call with its result; at the rate `failing` it fails first, and is tried again."""
        while self.rng.random() < failing:
            self._add({"name": name, "arguments": arguments, "error": "TimeoutError: no answer"}, group)
        self._add({"name": name, "arguments": arguments, "result": result}, group)
        return result

    def failed(self, name: str, arguments: Any, message: str) -> None:
        self._add({"name": name, "arguments": arguments, "error": message}, None)

    def together(self, *calls: tuple[str, Any, Any]) -> None:
        """Calls side by side, in any order."""
        self._group += 1
        for name, arguments, result in self.rng.sample(calls, len(calls)):
            self._add({"name": name, "arguments": arguments, "result": result}, self._group)

    def answer(self, text: str) -> Line:
        self.line |= {
            "output": text,
            "duration_seconds": round(self.seconds, 3),
            "usage": {"input_tokens": self.tokens, "output_tokens": self.rng.randint(40, 160)},
        }
        return self.line

    def _add(self, call: Line, group: int | None) -> None:
        if group is not None:
            call["parallel_group"] = group
        self.line["tool_calls"].append(call)
        self.seconds += self.rng.expovariate(2.0)
        self.tokens += self.rng.randint(80, 240)


_PEOPLE = ("Ada", "Grace", "Linus", "Barbara", "Edsger", "Niklaus", "Radia", "Donald", "Frances", "Ken")
_CITIES = (
    "Oslo",
    "Rome",
    "Lima",
    "Cairo",
    "Quito",
    "Paris",
    "Delhi",
    "Seoul",
    "Porto",
    "Turin",
    "Basel",
    "Perth",
)


def refund_agent(rng: random.Random) -> Line:
    """Looks an order up, checks the policy, refunds or refuses, and writes to the customer."""
    order, amount = f"ORD-{rng.randint(10000, 99999)}", round(rng.uniform(5, 300), 2)
    person = rng.choice(_PEOPLE)
    text = rng.choice(("Please refund {}", "I want my money back for {}", "{} arrived broken, refund it"))
    run = _Script("refund_agent", rng, text.format(order))
    found: Line = {
        "order_id": order,
        "customer": {"id": f"C{rng.randint(100, 999)}", "name": person},
        "total": amount,
    }
    run.call("get_order", {"order_id": order}, found, failing=0.08)
    allowed = rng.random() < 0.8
    run.call("check_policy", {"order_id": order}, {"refundable": allowed}, failing=0.03)
    if rng.random() < 0.3:
        run.call(
            "get_customer", {"customer_id": found["customer"]["id"]}, {"tier": rng.choice(("gold", "basic"))}
        )
    if allowed:
        reference = f"RF{rng.randint(1000000, 9999999)}"
        run.call(
            "issue_refund",
            {"order_id": order, "amount": amount, "currency": "EUR"},
            {"refund_id": reference},
            failing=0.05,
        )
    else:
        run.call(
            "open_ticket", {"order_id": order, "team": rng.choice(("returns", "billing"))}, {"ticket": 1}
        )
    words = rng.choice(("About your order", "Your refund", "News on your request"))
    run.call(
        "send_email",
        {"customer_id": found["customer"]["id"], "subject": f"{words}, {person}"},
        {"sent": True},
    )
    return run.answer(f"Done with {order}.")


def travel_agent(rng: random.Random) -> Line:
    """Searches flights and hotels side by side, holds, maybe asks for the weather, and books."""
    start, end = rng.sample(_CITIES, 2)
    day = f"2026-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
    run = _Script(
        "travel_agent", rng, f"{rng.choice(('Book', 'Find', 'Get'))} me a trip from {start} to {end} on {day}"
    )
    flights: Line = {
        "flights": [{"id": f"FL{rng.randint(100, 999)}", "price": rng.randint(60, 700)} for _ in range(3)]
    }
    hotels = [{"hotel": f"H-{rng.randint(10, 99)}-{rng.choice('ABC')}"} for _ in range(rng.randint(1, 4))]
    trip = {"from": start, "to": end, "date": day}
    if rng.random() < 0.7:
        run.together(("search_flights", trip, flights), ("search_hotels", {"city": end, "date": day}, hotels))
    else:
        run.call("search_flights", trip, flights, failing=0.05)
        run.call("search_hotels", {"city": end, "date": day}, hotels)
    if rng.random() < 0.35:
        run.call("get_weather", {"city": end}, {"celsius": rng.randint(-5, 35)})
    flight = rng.choice(flights["flights"])["id"]
    held = run.call(
        "hold_flight", {"flight_id": flight}, {"hold": f"HLD{rng.randint(1000, 9999)}"}, failing=0.1
    )
    run.call("book_flight", {"hold": held["hold"], "seats": rng.choice((1, 1, 1, 2, 2, 3))}, {"pnr": "X"})
    if rng.random() < 0.6:
        run.call(
            "book_hotel", {"hotel": rng.choice(hotels)["hotel"], "nights": rng.randint(1, 7)}, {"ok": True}
        )
    return run.answer(f"You fly to {end} on {day}.")


def research_agent(rng: random.Random) -> Line:
    """Searches several times in its own words, reads some pages, and writes a summary."""
    topic = rng.choice(
        ("solar storms", "heat pumps", "tidal power", "moss gardens", "sea walls", "tin whiskers")
    )
    run = _Script("research_agent", rng, f"Write a summary about {topic}")
    pages: list[str] = []
    for _ in range(rng.choice((1, 1, 2, 2, 2, 3, 3, 4))):
        words = rng.sample(("overview", "history", "costs", "latest", "explained", "numbers", "risks"), 2)
        found = [f"https://example.org/{rng.getrandbits(32):08x}" for _ in range(3)]
        run.call(
            "web_search",
            {"query": f"{topic} {' '.join(words)}", "limit": 3},
            {"results": [{"url": url} for url in found]},
            failing=0.06,
        )
        pages += found
    for url in rng.sample(pages, rng.randint(1, min(3, len(pages)))):
        if rng.random() < 0.1:
            run.failed("fetch_page", {"url": url}, "404 not found")
            url = rng.choice([page for page in pages if page != url])
        run.call("fetch_page", {"url": url}, f"Text about {topic}")
    if rng.random() < 0.25:
        run.call(
            "take_note", {"text": f"{topic}: {rng.choice(('check again', 'good source', 'too old'))}"}, "ok"
        )
    run.call("write_summary", {"topic": topic, "style": rng.choice(("short", "long"))}, "written")
    return run.answer(f"Here is what I found about {topic}. Sources are listed below.")


def deploy_agent(rng: random.Random) -> Line:
    """Locks, tests, deploys, checks health, rolls back or announces, and unlocks."""
    service, version = (
        rng.choice(("api", "web", "billing", "search")),
        f"v{rng.randint(1, 9)}.{rng.randint(0, 30)}.{rng.randint(0, 9)}",
    )
    run = _Script("deploy_agent", rng, f"Deploy {service} {version}")
    lock = run.call(
        "acquire_lock", {"service": service}, {"lock_id": f"lk-{rng.getrandbits(24):06x}"}, failing=0.1
    )
    run.call(
        "run_tests",
        {"service": service, "version": version},
        {"passed": True, "tests": rng.randint(50, 900)},
        failing=0.08,
    )
    if rng.random() < 0.2:
        run.call("notify_oncall", {"service": service}, {"ok": True})
    run.call(
        "deploy",
        {"service": service, "version": version, "strategy": "rolling", "replicas": rng.randint(2, 6)},
        {"deployment": rng.randint(1000, 9999)},
    )
    healthy = rng.random() < 0.85
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        run.call("check_health", {"service": service, "version": version}, {"healthy": healthy})
    if healthy:
        run.call(
            "announce",
            {
                "channel": "#releases",
                "text": rng.choice((f"{service} {version} is out", f"released {service} {version}")),
            },
            {"ts": 1},
        )
    else:
        run.call("rollback", {"service": service}, {"ok": True})
    run.call("release_lock", {"lock_id": lock["lock_id"]}, {"ok": True}, failing=0.03)
    return run.answer(f"{service} {version}: {'deployed' if healthy else 'rolled back'}.")


def records_agent(rng: random.Random) -> Line:
    """Verifies who calls, reads a record in pages, updates fields, and writes the audit line."""
    patient, birth = (
        f"P{rng.randint(100000, 999999)}",
        f"{rng.randint(1940, 2010)}-0{rng.randint(1, 9)}-1{rng.randint(0, 9)}",
    )
    run = _Script(
        "records_agent",
        rng,
        f"I am patient {patient}, born {birth}. {rng.choice(('New phone number', 'I moved', 'New data'))}",
    )
    session = run.call(
        "verify_identity",
        {"patient_id": patient, "birth_date": birth},
        {"session": f"s{rng.getrandbits(40):010x}"},
        failing=0.05,
    )["session"]
    pages = rng.choice((1, 1, 2, 3))
    for page in range(1, pages + 1):
        run.call(
            "read_record",
            {"session": session, "page": page},
            {"page": page, "pages": pages, "entries": [rng.randint(100, 999)]},
        )
    if rng.random() < 0.4:
        run.together(
            ("list_visits", {"session": session}, []), ("list_prescriptions", {"session": session}, [])
        )
    for name in rng.sample(("phone", "address", "email"), rng.choice((1, 1, 1, 2))):
        run.call(
            "update_field",
            {"session": session, "field": name, "value": f"{name} {rng.getrandbits(20)}"},
            {"saved": True},
            failing=0.06,
        )
    run.call(
        "write_audit",
        {"session": session, "reason": rng.choice(("patient request", "correction"))},
        {"audit": 7},
    )
    return run.answer("Your record is up to date. Is there anything else I can do?")


def expense_agent(rng: random.Random) -> Line:
    """Reads receipts, claims no more than they show and at most 600 in all, and pays what is approved."""
    person, trip = f"E{rng.randint(1000, 9999)}", f"TRIP-{rng.randint(100, 999)}"
    run = _Script("expense_agent", rng, f"I am {person}, settle {trip}")
    receipts = [f"RC{rng.randint(10000, 99999)}" for _ in range(rng.choice((1, 2, 2, 3, 4)))]
    run.call("list_receipts", {"employee_id": person, "trip": trip}, {"receipts": receipts}, failing=0.05)
    left = 600.0
    unread, shown = [*receipts], dict[str, float]()
    while unread or shown:
        if unread and (not shown or rng.random() < 0.4):
            receipt = unread.pop(0)
            shown[receipt] = round(rng.uniform(20, 500), 2)
            run.call("read_receipt", {"receipt_id": receipt}, {"total": shown[receipt], "currency": "EUR"})
            continue
        receipt = next(iter(shown))
        most = left - 10 * (len(unread) + len(shown) - 1)
        claimed = round(min(shown.pop(receipt) * rng.choice((1, 1, 0.8, 0.5)), most), 2)
        left -= claimed
        run.call(
            "add_claim",
            {"employee_id": person, "receipt": receipt, "amount": claimed},
            {"claim": rng.randint(10000, 99999)},
            failing=0.03,
        )
    decision = rng.choice(("approved", "approved", "declined", "query"))
    run.call(
        "request_approval", {"employee_id": person, "reference": trip}, {"review": {"decision": decision}}
    )
    if decision == "approved":
        run.call("pay_out", {"employee_id": person, "trip": trip}, {"paid": True}, failing=0.04)
    else:
        run.call("notify", {"employee_id": person, "about": decision}, {"sent": True})
    return run.answer(f"{trip} is {decision}.")


AGENTS: tuple[Callable[[random.Random], Line], ...] = (
    refund_agent, travel_agent, research_agent, deploy_agent, records_agent, expense_agent,
)  # fmt: skip


def population(agent: Callable[[random.Random], Line], runs: int, seed: int = 1) -> list[Line]:
    """`runs` good runs of one agent."""
    rng = random.Random(f"{agent.__name__}:{seed}")
    return [agent(rng) for _ in range(runs)]
