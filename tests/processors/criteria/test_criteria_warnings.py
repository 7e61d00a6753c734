"""What criteria say without effect."""

from processors.criteria import criteria_warnings, read_criteria


def warnings(*texts: str) -> list[str]:
    agents = [
        agent
        for number, text in enumerate(texts)
        for agent in read_criteria(text, f"{number}.yaml", {}).agents
    ]
    return [str(warning) for warning in criteria_warnings(agents)]


def agent(pattern: str, *entries: str) -> str:
    lines = [f"      - {{evaluator: tool-repetition, {entry}}}" for entry in entries]
    return "\n".join([f'  "{pattern}":', "    evaluations:", *lines, ""])


def test_sound_criteria_give_none() -> None:
    text = (
        "agents:\n"
        + agent("*", "name: a", "name: b")
        + agent("w*", "name: a", "name: c, enabled: true")
        + agent("weather", "name: a, enabled: false", "name: c, enabled: false")
    )

    assert [] == warnings(text, text)


def test_a_pattern_that_no_name_matches_is_told() -> None:
    assert ["0.yaml:2: agents.agent-[9-0]: no name matches this pattern"] == [
        line.replace('"', "") for line in warnings("agents:\n" + agent("agent-[9-0]", "name: a"))
    ]


def test_switching_off_what_nobody_gives_is_told_with_the_nearest_name() -> None:
    text = (
        "agents:\n"
        + agent("*", "name: repetition")
        + agent("w*", "name: only-here")
        + agent("weather", "name: repetitoin, enabled: false", "name: only-here, enabled: false")
        + agent("news", "name: only-here, enabled: false")
    )

    assert [
        '0.yaml:10: agents.weather.evaluations[0]: "repetitoin" switches nothing off: '
        'no other pattern gives it; did you mean "repetition"?',
        '0.yaml:14: agents.news.evaluations[0]: "only-here" switches nothing off: no other pattern gives it',
    ] == warnings(text)


def test_criteria_of_another_tenant_do_not_count() -> None:
    off = "tenant: blue\nagents:\n" + agent("weather", "name: a, enabled: false")

    assert 1 == len(warnings("agents:\n" + agent("*", "name: a"), off))
