import pytest

from processors.criteria import AgentCriteria, CriteriaSet, Evaluation, evaluator_types

_KIND = evaluator_types()["tool-repetition"]
EVALUATOR = _KIND(_KIND.Config(), None)


def evaluation(name: str, source: str = "", *, enabled: bool = True, criteria_hash: str = "") -> Evaluation:
    return Evaluation(
        name=name, evaluator=EVALUATOR, source=source, enabled=enabled, criteria_hash=criteria_hash
    )


def agent(pattern: str, *evaluations: Evaluation | str, tenant: str = "") -> AgentCriteria:
    made = tuple(evaluation(entry, pattern) if isinstance(entry, str) else entry for entry in evaluations)
    return AgentCriteria(pattern=pattern, evaluations=made, tenant=tenant)


def applied(criteria: CriteriaSet, name: str, tenant: str = "") -> list[tuple[str, str]]:
    return [(found.name, found.source) for found in criteria.evaluations_for(name, tenant)]


def test_all_patterns_that_match_apply_in_the_order_of_the_files() -> None:
    criteria = CriteriaSet([agent("*", "a"), agent("weather", "c", "b"), agent("w*", "d")])

    assert applied(criteria, "weather") == [("a", "*"), ("c", "weather"), ("b", "weather"), ("d", "w*")]
    assert applied(criteria, "other") == [("a", "*")]


def test_an_agent_without_criteria_has_none() -> None:
    assert applied(CriteriaSet([agent("weather", "a")]), "other") == []


@pytest.mark.parametrize(
    ("patterns", "winner"),
    [
        (["weather", "weathe[r]", "*"], "weather"),
        (["*", "weath*", "w*r"], "weath*"),
        (["weath??", "weathe*"], "weathe*"),
        (["w[e]ather", "weathe?"], "weathe?"),
        (["w*", "*r"], "*r"),
        (["*r", "w*"], "w*"),
    ],
)
def test_of_evaluations_with_one_name_the_more_specific_pattern_counts(
    patterns: list[str], winner: str
) -> None:
    criteria = CriteriaSet([agent(pattern, "order") for pattern in patterns])

    assert applied(criteria, "weather") == [("order", winner)]


def test_an_inherited_evaluation_can_be_switched_off_and_on_again() -> None:
    off = evaluation("order", "w*", enabled=False)
    criteria = CriteriaSet([agent("*", "order", "count"), agent("w*", off), agent("weather", "order")])

    assert applied(criteria, "web") == [("count", "*")]
    assert applied(criteria, "weather") == [("count", "*"), ("order", "weather")]


def test_switching_off_does_not_reach_a_more_specific_pattern() -> None:
    criteria = CriteriaSet([agent("weather", "order"), agent("*", evaluation("order", enabled=False))])

    assert applied(criteria, "weather") == [("order", "weather")]


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("Weather", "weather", False),
        ("weather", "weather_agent", False),
        ("w?b", "web", True),
        ("w?b", "wb", False),
        ("agent[0-9]", "agent7", True),
        ("agent[!0-9]", "agent7", False),
        ("[*]", "*", True),
        ("[*]", "x", False),
        ("a.c", "abc", False),
        ("*", "two\nlines", True),
        ("Planner [v2]", "Planner [v2]", True),
        ("Planner [v2]", "Planner v", True),
        ("*", "", True),
    ],
)
def test_patterns_match_whole_names_with_their_case(pattern: str, name: str, matches: bool) -> None:
    criteria = CriteriaSet([agent(pattern, "a")])

    assert matches == bool(applied(criteria, name))


def test_the_same_agent_in_two_files_unites() -> None:
    criteria = CriteriaSet([agent("weather", "a"), agent("weather", "b")])

    assert [name for name, _ in applied(criteria, "weather")] == ["a", "b"]


def test_criteria_of_a_tenant_are_for_its_agents_only() -> None:
    criteria = CriteriaSet([agent("weather", "a", tenant="blue"), agent("*", "b")])

    assert applied(criteria, "weather", "blue") == [("a", "weather")]
    assert applied(criteria, "weather") == [("b", "*")]
    assert applied(criteria, "weather", "red") == []


def test_exact_names_are_those_without_wildcards() -> None:
    criteria = CriteriaSet([
        agent("b", "x"), agent("*"), agent("a?"), agent("a"), agent("b", "y"), agent("c", tenant="t")
    ])  # fmt: skip

    assert criteria.exact_names() == ("b", "a")
    assert criteria.exact_names("t") == ("c",)


def test_many_agents_get_their_answer_though_only_some_are_remembered() -> None:
    criteria = CriteriaSet([agent("agent-1*", "a"), agent("*", "b")])

    for index in range(25_000):
        criteria.evaluations_for(f"agent-{index}")

    assert applied(criteria, "agent-17") == [("a", "agent-1*"), ("b", "*")]
    assert applied(criteria, "agent-27") == [("b", "*")]
    assert len(criteria._cache) <= 10_000


def test_the_hash_changes_with_everything_that_counts() -> None:
    sets = [
        CriteriaSet([]),
        CriteriaSet([agent("a", evaluation("x"))]),
        CriteriaSet([agent("b", evaluation("x"))]),
        CriteriaSet([agent("a", evaluation("y"))]),
        CriteriaSet([agent("a", evaluation("x"), tenant="t")]),
        CriteriaSet([agent("a", evaluation("x", enabled=False))]),
        CriteriaSet([agent("a", evaluation("x", criteria_hash="1"))]),
        CriteriaSet([agent("a", evaluation("x"), evaluation("y"))]),
        CriteriaSet([agent("a", evaluation("x")), agent("a", evaluation("y"))]),
    ]

    assert len({criteria.hash for criteria in sets}) == len(sets)
    assert CriteriaSet([agent("a", evaluation("x"))]).hash == sets[1].hash


def test_a_set_can_say_how_much_it_is() -> None:
    assert CriteriaSet([]).describe() == "0 agents, 0 evaluations"
    assert CriteriaSet([agent("*", "a")]).describe() == "1 pattern, 1 evaluation"
    assert (
        CriteriaSet([agent("a", "x"), agent("b", "x", "y"), agent("*", "z")]).describe()
        == "2 agents and 1 pattern, 4 evaluations"
    )


def test_each_evaluation_is_told_with_the_criteria_that_it_is_from() -> None:
    everyone = AgentCriteria(pattern="*", evaluations=[evaluation("order"), evaluation("args")], owner="all")
    weather = AgentCriteria(pattern="weather*", evaluations=[evaluation("order")], owner="weather")
    criteria = CriteriaSet([everyone, weather])

    sources = criteria.sources_for("weather_agent")

    assert {"args": "all", "order": "weather"} == {found.name: source.owner for source, found in sources}
    assert criteria.evaluations_for("weather_agent") == tuple(found for _, found in sources)


def test_before_its_name_is_known_only_what_applies_to_every_agent_is_early() -> None:
    loops, budget, calls = (
        Evaluation(name=name, evaluator=EVALUATOR, early=True) for name in ("loops", "budget", "calls")
    )
    criteria = CriteriaSet([agent("*", loops, budget, "order"), agent("planner", "budget", calls)])

    assert criteria.early_for(None) == (loops,)
    assert criteria.early_for("planner") == (loops, calls)
    assert criteria.early_for("other") == (loops, budget)
    assert criteria.early_for(None, "tenant") == ()
    assert criteria.looks_early
    assert not CriteriaSet([agent("*", "order")]).looks_early
