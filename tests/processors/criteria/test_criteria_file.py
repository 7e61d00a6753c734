import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processors.criteria import ExpectedResultEntry, evaluator_types, read_criteria
from processors.criteria.agent_criteria import AgentCriteria, Evaluation, Mute
from processors.criteria.selector import Selector
from processors.documents import InvalidInput
from processors.model import JsonObject, JsonValue, Severity, Stage

ORDER: JsonObject = {"tool_calls_order": ["search", "book"]}
COUNT: JsonObject = {"tool_calls_count": {"search": ["=", 1]}}


def read(text: str, **environment: str) -> Sequence[AgentCriteria]:
    return read_criteria(text, "criteria.yaml", environment).agents


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidInput) as found:
        read(text)
    return str(found.value).splitlines()


def one(**entry: JsonValue) -> Evaluation:
    (agent,) = read(json.dumps({"agents": {"weather": {"evaluations": [entry]}}}))
    (evaluation,) = agent.evaluations
    return evaluation


def refused(**entry: JsonValue) -> list[str]:
    """The problems of an evaluation, without what is the same for all."""
    lines = problems(json.dumps({"agents": {"weather": {"evaluations": [entry]}}}))
    return [line.removeprefix("criteria.yaml:1: agents.weather.evaluations[0]") for line in lines]


def test_an_evaluation_has_what_the_file_says() -> None:
    (agent,) = read(
        """
tenant: blue
version: 1
agents:
  weather:
    evaluations:
      - evaluator: tool-call-order
        name: forecast-order
        config: {strict: true}
        criteria: {tool_calls_order: [a, b]}
        pass_threshold: 0.9
        severity: page
        enabled: no
"""
    )

    evaluation = agent.evaluations[0]
    assert (agent.pattern, agent.tenant) == ("weather", "blue")
    assert evaluation.name == "forecast-order"
    assert evaluation.evaluator.id == "tool-call-order"
    assert evaluation.pass_threshold == 0.9
    assert evaluation.severity is Severity.PAGE
    assert evaluation.enabled is False
    assert evaluation.source == "criteria.yaml:7"


def test_what_is_left_out_has_its_default() -> None:
    evaluation = one(evaluator="tool-call-order", criteria=ORDER)

    assert evaluation.name == "tool-call-order"
    assert evaluation.pass_threshold == 1.0
    assert evaluation.severity is Severity.TICKET
    assert evaluation.enabled is True


@pytest.mark.parametrize(
    "written", ["tool-call-order", "tool_call_order", "uipath-tool-call-order", "uipath_tool_call_order"]
)
def test_an_evaluator_is_known_by_every_spelling_of_its_id(written: str) -> None:
    evaluation = one(evaluator=written, criteria=ORDER)

    assert evaluation.evaluator.id == "tool-call-order"
    assert evaluation.name == "tool-call-order"


def test_camel_case_is_the_same_as_snake_case() -> None:
    snake = one(evaluator="tool-call-order", criteria=ORDER, pass_threshold=0.5)
    camel = one(
        evaluator="tool-call-order", criteria={"toolCallsOrder": ["search", "book"]}, passThreshold=0.5
    )

    assert snake.criteria_hash == camel.criteria_hash
    assert (snake.pass_threshold, camel.pass_threshold) == (0.5, 0.5)


def test_both_spellings_of_one_key_are_refused() -> None:
    lines = refused(
        evaluator="tool-call-order",
        criteria={"tool_calls_order": ["x"], "toolCallsOrder": ["search", "book"]},
        config={"include_categories": [], "includeCategories": []},
        pass_threshold=0.7,
        passThreshold=0.5,
        when={"span_attributes": {"a": 1}, "spanAttributes": {"a": 2}},
    )

    assert lines == [
        '.when.span_attributes: the same key as "spanAttributes": expected one of the two',
        '.pass_threshold: the same key as "passThreshold": expected one of the two',
        '.config.include_categories: the same key as "includeCategories": expected one of the two',
        '.criteria.tool_calls_order: the same key as "toolCallsOrder": expected one of the two',
    ]


def test_the_hash_changes_with_whatever_could_change_a_verdict() -> None:
    entries: list[JsonObject] = [
        {"evaluator": "tool-call-order", "criteria": ORDER},
        {"evaluator": "tool-call-order", "criteria": {"tool_calls_order": ["book", "search"]}},
        {"evaluator": "tool-call-order", "criteria": ORDER, "config": {"strict": True}},
        {"evaluator": "tool-call-order", "criteria": ORDER, "pass_threshold": 0.5},
        {"evaluator": "tool-call-count", "criteria": COUNT},
        {"evaluator": "tool-repetition"},
        {"evaluator": "tool-constraints", "criteria": {"constraints": [{"absence": {"tool": "a"}}]}},
        {
            "evaluator": "tool-constraints",
            "criteria": {"constraints": [{"absence": {"tool": "a", "result": None}}]},
        },
    ]

    hashes = [one(**entry).criteria_hash for entry in entries]

    assert len(set(hashes)) == len(entries)
    assert one(**entries[0], name="x", severity="page", enabled=False).criteria_hash == hashes[0]
    assert one(**entries[0], config={"strict": "off", "name": "x"}).criteria_hash == hashes[0]


@pytest.mark.parametrize("key", ["default_evaluation_criteria", "defaultEvaluationCriteria"])
def test_default_criteria_count_where_none_are_given_and_are_not_merged(key: str) -> None:
    wanted = one(evaluator="tool-call-order", criteria=ORDER).criteria_hash

    assert wanted == one(evaluator="tool-call-order", config={key: ORDER}).criteria_hash
    assert wanted == one(evaluator="tool-call-order", config={key: ORDER}, criteria=None).criteria_hash
    other: JsonObject = {"tool_calls_order": ["x"]}
    assert wanted == one(evaluator="tool-call-order", config={key: other}, criteria=ORDER).criteria_hash


def test_both_spellings_of_default_criteria_are_refused() -> None:
    config: JsonObject = {"default_evaluation_criteria": ORDER, "defaultEvaluationCriteria": ORDER}

    assert refused(evaluator="tool-call-order", config=config) == [
        ".config.default_evaluation_criteria: "
        'the same key as "defaultEvaluationCriteria": expected one of the two'
    ]


def test_an_evaluator_that_expects_nothing_needs_no_criteria() -> None:
    assert one(evaluator="tool-repetition").criteria_hash == one(
        evaluator="tool-repetition", criteria={}, config=None
    ).criteria_hash  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({}, [': missing key "evaluator"']),
        (
            {"evaluator": "tool-call-oder"},
            ['.evaluator: unknown evaluator "tool-call-oder"; did you mean "tool-call-order"?'],
        ),
        ({"evaluator": "zzz"}, ['.evaluator: unknown evaluator "zzz"']),
        ({"evaluator": 5}, [".evaluator: expected a text; found the number 5; put it in quotes"]),
        (
            {"evaluator": "tool-call-order"},
            [': missing key "criteria": tool-call-order needs tool_calls_order'],
        ),
        (
            {"evaluator": "tool-call-order", "criteria": {}},
            ['.criteria: missing key "tool_calls_order"'],
        ),
        (
            {"evaluator": "tool-call-order", "criteria": [1]},
            [".criteria: expected a mapping of keys to values; found a list"],
        ),
        (
            {"evaluator": "tool-call-order", "criteria": {"toolCallsOder": []}},
            [
                '.criteria: missing key "tool_calls_order"',
                '.criteria.toolCallsOder: unknown key; did you mean "tool_calls_order"?',
            ],
        ),
        (
            {"evaluator": "tool-call-order", "criteria": {"toolCallsOrder": ["a", 1]}},
            [
                ".criteria.toolCallsOrder[1]: expected a text or a mapping of keys to values; "
                "found the number 1"
            ],
        ),
        (
            {"evaluator": "tool-call-order", "criteria": ORDER, "config": {"strict": "maybe"}},
            ['.config.strict: expected true or false; found the text "maybe"'],
        ),
        (
            {"evaluator": "tool-call-order", "criteria": ORDER, "config": {"stric": True}},
            ['.config.stric: unknown key; did you mean "strict"?'],
        ),
        (
            {"evaluator": "tool-call-order", "criteria": ORDER, "config": {"name": 1, "description": None}},
            [".config.name: expected a text", ".config.description: expected a text"],
        ),
        (
            {"evaluator": "tool-call-order", "config": {"defaultEvaluationCriteria": {"x": 1}}},
            [
                '.config.defaultEvaluationCriteria: missing key "tool_calls_order"',
                ".config.defaultEvaluationCriteria.x: unknown key; known: tool_calls_order",
            ],
        ),
        (
            {"evaluator": "tool-call-order", "config": {"default_evaluation_criteria": [1]}},
            [".config.default_evaluation_criteria: expected a mapping of keys to values"],
        ),
        (
            {"evaluator": "tool-call-count", "criteria": {"tool_calls_count": {"a": ["=>", 1], "b": ["="]}}},
            [
                '.criteria.tool_calls_count.a[0]: expected "=", "==", "!=", ">", "<", ">=" or "<="; '
                'found the text "=>"',
                ".criteria.tool_calls_count.b: missing entry 2 of the list",
            ],
        ),
        (
            {"evaluator": "tool-call-count", "criteria": {"tool_calls_count": {"a": ["=", -1]}}},
            [".criteria.tool_calls_count.a[1]: expected a number of at least 0; found the number -1"],
        ),
        (
            {"evaluator": "tool-repetition", "criteria": {"limit": 3}},
            [".criteria.limit: unknown key; tool-repetition takes no criteria"],
        ),
        (
            {"evaluator": "tool-repetition", "pass_threshold": 1.5, "severity": "pager", "enabled": 2},
            [
                ".pass_threshold: expected a number of at most 1; found the number 1.5",
                '.severity: expected "page", "ticket" or "advisory"; found the text "pager"; '
                'did you mean "page"?',
                ".enabled: expected true or false; found the number 2",
            ],
        ),
        (
            {"evaluator": "tool-repetition", "name": "", "treshold": 1},
            [
                '.name: expected at least 1 character; found the text ""',
                '.treshold: unknown key; did you mean "pass_threshold"?',
            ],
        ),
        (
            {"evaluator": "tool-repetition", "when": {}},
            [
                ".when: expected at least one condition: "
                "input, session, resource_attributes, span_attributes, called"
            ],
        ),
        (
            {
                "evaluator": "tool-repetition",
                "when": {
                    "inptu": 1,
                    "session": {"$globb": "x"},
                    "resourceAttributes": {"a": {"$in": []}},
                    "span_attributes": "x",
                },
            },
            [
                '.when.span_attributes: expected a mapping of keys to values; found the text "x"',
                '.when.inptu: unknown key; did you mean "input"?',
                '.when.session.$globb: unknown matcher "$globb"; did you mean "$glob"?',
                ".when.resourceAttributes.a.$in: expected a list of values",
            ],
        ),
        (
            {"evaluator": "tool-repetition", "when": {"input": {"a": {"$input": "b"}}}},
            [".when.input: $input cannot stand in `when`: it is what runs are selected by"],
        ),
        (
            {"evaluator": "tool-repetition", "when": {"session": {"$input": 5}}},
            [
                ".when.session.$input: expected the path of one value of the input, "
                'such as "city" or "trip.stops[0]"',
                ".when.session: $input cannot stand in `when`: it is what runs are selected by",
            ],
        ),
        (
            {"evaluator": "tool-repetition", "sample": 0, "stage": "shaddow"},
            [
                ".sample: expected a number above 0; found the number 0",
                '.stage: expected "live" or "shadow"; found the text "shaddow"; did you mean "shadow"?',
            ],
        ),
        (
            {"evaluator": "tool-repetition", "mute": {"until": "soon", "resaon": "x"}},
            [
                '.mute.until: expected a date such as "2026-01-31", or a time with its offset: '
                '"2026-01-31T12:00:00Z"',
                '.mute: missing key "reason"',
                '.mute: missing key "by"',
                '.mute.resaon: unknown key; did you mean "reason"?',
            ],
        ),
        (
            {
                "evaluator": "tool-call-output",
                "criteria": {"tool_outputs": [{"name": "a", "output": {"$regex": "("}}]},
            },
            [
                '.criteria.tool_outputs[0].output.$regex: pattern "(" does not compile: missing ), '
                "unterminated subpattern at position 0"
            ],
        ),
        (
            {"evaluator": "tool-call-count", "criteria": {"tool_calls_count": {"$regex": ["=", 1]}}},
            [".criteria.tool_calls_count.$regex: a matcher cannot stand here"],
        ),
        (
            {"evaluator": "tool-call-order", "criteria": {"tool_calls_order": [{"$glob": "x"}]}},
            [".criteria.tool_calls_order[0].$glob: a matcher cannot stand here"],
        ),
        (
            {
                "evaluator": "tool-call-args",
                "criteria": {"tool_calls": [{"name": "a", "args": {"x": [{"$rnge": [1, 2]}]}}]},
            },
            ['.criteria.tool_calls[0].args.x[0].$rnge: unknown matcher "$rnge"; did you mean "$range"?'],
        ),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_was_expected(
    entry: JsonObject, expected: list[str]
) -> None:
    assert expected == refused(**entry)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["criteria.yaml:1: expected a mapping of keys to values; found nothing (null)"]),
        ("{}", ['criteria.yaml:1: missing key "agents"']),
        ("agents: 1", ["criteria.yaml:1: agents: expected a mapping of keys to values; found the number 1"]),
        (
            "agents:\n  a:\n  b: {}\n  c: {evaluations: 5}\n  d: {evaluations: [5], evaluation: []}",
            [
                "criteria.yaml:2: agents.a: expected a mapping of keys to values; found nothing (null)",
                'criteria.yaml:3: agents.b: missing key "evaluations"',
                "criteria.yaml:4: agents.c.evaluations: expected a list; found the number 5",
                "criteria.yaml:5: agents.d.evaluations[0]: expected a mapping of keys to values; "
                "found the number 5",
                'criteria.yaml:5: agents.d.evaluation: unknown key; did you mean "evaluations"?',
            ],
        ),
        (
            "agents: {}\nowner: 5\ncontact: ''\ntests: {}\ntenant: 5\nversion: 2\nagent: {}",
            [
                "criteria.yaml:2: owner: expected a text; found the number 5; put it in quotes",
                "criteria.yaml:3: contact: expected at least 1 character; found the text \"\"",
                "criteria.yaml:4: tests: expected a list; found a mapping of keys to values",
                "criteria.yaml:5: tenant: expected a text; found the number 5; put it in quotes",
                "criteria.yaml:6: version: expected 1; found the number 2",
                'criteria.yaml:7: agent: unknown key; did you mean "agents"?',
            ],
        ),
        ("agents:\n  007: {evaluations: []}", [
            "criteria.yaml:2: agents: a number with a leading zero could be octal: write it without, "
            "or put it in quotes",
        ]),
        ("agents:\n  7: {evaluations: []}", [
            'criteria.yaml:2: agents: a key must be a text: put "7" in quotes'
        ]),
        ('agents: {"my agent": {evaluations: [{evaluator: x}]}}', [
            'criteria.yaml:1: agents."my agent".evaluations[0].evaluator: unknown evaluator "x"'
        ]),
    ],
)  # fmt: skip
def test_mistakes_in_the_frame_are_told(text: str, expected: list[str]) -> None:
    assert expected == problems(text)


def test_a_file_with_ten_mistakes_gives_ten_lines() -> None:
    text = """\
agents:
  weather:
    evaluations:
      - evaluator: tool-call-oder
      - evaluator: tool-call-order
        name: first
        config: {strict: perhaps}
        criteria: {tool_calls_order: search}
      - evaluator: tool-call-count
        name: second
        criteria:
          tool_calls_count:
            search: ["=>", 1]
            book: ["=", -2]
        pass_threshold: 2
      - evaluator: tool-call-args
        name: first
        criteria: {tool_calls: [{name: search}]}
        severity: loud
      - evaluator: tool-repetition
        when: {inptu: {action: search}}
"""

    assert problems(text) == [
        "criteria.yaml:4: agents.weather.evaluations[0].evaluator: "
        'unknown evaluator "tool-call-oder"; did you mean "tool-call-order"?',
        "criteria.yaml:7: agents.weather.evaluations[1].config.strict: "
        'expected true or false; found the text "perhaps"',
        "criteria.yaml:8: agents.weather.evaluations[1].criteria.tool_calls_order: "
        'expected a list; found the text "search"',
        "criteria.yaml:13: agents.weather.evaluations[2].criteria.tool_calls_count.search[0]: "
        'expected "=", "==", "!=", ">", "<", ">=" or "<="; found the text "=>"',
        "criteria.yaml:14: agents.weather.evaluations[2].criteria.tool_calls_count.book[1]: "
        "expected a number of at least 0; found the number -2",
        "criteria.yaml:15: agents.weather.evaluations[2].pass_threshold: "
        "expected a number of at most 1; found the number 2",
        'criteria.yaml:16: agents.weather.evaluations[3]: second evaluation named "first", '
        "the first is on line 5",
        'criteria.yaml:18: agents.weather.evaluations[3].criteria.tool_calls[0]: missing key "args"',
        "criteria.yaml:19: agents.weather.evaluations[3].severity: "
        'expected "page", "ticket" or "advisory"; found the text "loud"',
        'criteria.yaml:21: agents.weather.evaluations[4].when.inptu: unknown key; did you mean "input"?',
    ]


def test_two_evaluations_without_a_name_ask_for_one() -> None:
    text = (
        "agents:\n  a:\n    evaluations:\n    - evaluator: tool-repetition\n    - evaluator: tool_repetition"
    )

    assert problems(text) == [
        'criteria.yaml:5: agents.a.evaluations[1]: second evaluation named "tool-repetition", '
        "the first is on line 4; give one of them a name"
    ]


def test_mistakes_of_reading_and_of_content_are_told_together() -> None:
    text = """
agents:
  a:
    evaluations:
      - {evaluator: tool-repetition, name: "${env:NOT_SET}", name: x, severty: page}
  1:
    evaluations:
      - {evaluator: tool-repetition, pass_threshold: "${env:NOT_SET}"}
"""

    assert problems(text) == [
        "criteria.yaml:5: agents.a.evaluations[0].name: "
        'environment variable "NOT_SET" is not set; set it, or write "${env:NOT_SET:-default}"',
        "criteria.yaml:5: agents.a.evaluations[0].name: duplicate key, first on line 5",
        'criteria.yaml:5: agents.a.evaluations[0].severty: unknown key; did you mean "severity"?',
        'criteria.yaml:6: agents: a key must be a text: put "1" in quotes',
        "criteria.yaml:8: agents.1.evaluations[0].pass_threshold: "
        'environment variable "NOT_SET" is not set; set it, or write "${env:NOT_SET:-default}"',
    ]


def test_a_sound_agent_is_not_named_beside_a_bad_one() -> None:
    text = "agents:\n  sound: {evaluations: [{evaluator: tool-repetition}]}\n  bad: {evaluations: [{}]}"

    assert problems(text) == ['criteria.yaml:3: agents.bad.evaluations[0]: missing key "evaluator"']


def test_long_values_and_secrets_are_not_repeated() -> None:
    long = "x" * 1000

    assert refused(evaluator="tool-call-order", criteria={"tool_calls_order": long}) == [
        ".criteria.tool_calls_order: expected a list; found a text"
    ]


def test_environment_variables_expand_in_criteria_and_other_dollars_stay() -> None:
    text = """
agents:
  ${env:AGENT}:
    evaluations:
      - evaluator: tool-call-order
        criteria: {tool_calls_order: ["${env:TOOL}", $HOME, "$5", "a$$b", "$${env:TOOL}", "${x}"]}
        pass_threshold: ${env:THRESHOLD:-0.5}
"""
    literal = {"tool_calls_order": ["search", "$HOME", "$5", "a$$b", "${env:TOOL}", "${x}"]}
    wanted = read(json.dumps({
        "agents": {"weather": {"evaluations": [
            {"evaluator": "tool-call-order", "criteria": literal, "pass_threshold": 0.5}
        ]}}
    }).replace("${env:", "$${env:"))  # fmt: skip

    (agent,) = read(text, AGENT="weather", TOOL="search")

    assert agent.pattern == "weather"
    assert agent.evaluations[0].criteria_hash == wanted[0].evaluations[0].criteria_hash


def test_a_value_from_the_environment_is_not_told() -> None:
    text = "agents: {a: {evaluations: [{evaluator: tool-repetition, severity: '${env:S}'}]}}"

    with pytest.raises(InvalidInput) as found:
        read(text, S="hunter2")

    assert str(found.value) == (
        "criteria.yaml:1: agents.a.evaluations[0].severity: "
        'expected "page", "ticket" or "advisory"; found another value in ${env:S}'
    )


def test_an_evaluation_says_where_and_how_it_applies() -> None:
    evaluation = one(
        evaluator="tool-call-order",
        criteria=ORDER,
        when={"input": {"action": "search"}, "spanAttributes": {"user.tier": "gold"}},
        sample=0.25,
        stage="shadow",
        mute={"until": "2026-01-31", "reason": "ticket 7", "by": "jane"},
    )

    assert evaluation.when == Selector(input={"action": "search"}, span_attributes={"user.tier": "gold"})
    assert (evaluation.sample, evaluation.stage) == (0.25, Stage.SHADOW)
    assert evaluation.mute == Mute(1_769_817_600_000_000_000, "ticket 7", "jane")
    assert not evaluation.is_plain
    assert one(evaluator="tool-call-order", criteria=ORDER).is_plain


@pytest.mark.parametrize(
    ("until", "unix_seconds"),
    [
        ("2026-01-31", 1_769_817_600),
        ("2026-01-31T00:00:00Z", 1_769_817_600),
        ("2026-01-31T02:00:00+02:00", 1_769_817_600),
        ("2026-01-31 12:30:00.5+00:00", 1_769_862_600.5),
    ],
)
def test_a_mute_ends_at_a_time_or_at_the_beginning_of_a_day(until: str, unix_seconds: float) -> None:
    mute = one(evaluator="tool-repetition", mute={"until": until, "reason": "x", "by": "y"}).mute

    assert mute is not None
    assert mute.until_unix_nano == unix_seconds * 1_000_000_000


def test_a_condition_on_null_is_one() -> None:
    selector = one(evaluator="tool-repetition", when={"input": None}).when

    assert selector == Selector(input=None)
    assert selector != Selector()


def test_what_runs_an_evaluation_applies_to_is_part_of_its_hash() -> None:
    plain = one(evaluator="tool-repetition")
    selected = [
        one(evaluator="tool-repetition", when={"input": {"a": number}}).criteria_hash for number in (1, 2)
    ]
    muted = one(
        evaluator="tool-repetition",
        sample=0.5,
        stage="shadow",
        mute={"until": "2026-01-31", "reason": "x", "by": "y"},
    )

    assert len({plain.criteria_hash, *selected}) == 3
    assert muted.criteria_hash == plain.criteria_hash


def test_an_agent_knows_who_answers_for_it_and_where_it_stands() -> None:
    (agent,) = read("owner: team\ncontact: '#team'\nagents:\n  a: {evaluations: []}")

    assert (agent.owner, agent.contact, agent.source) == ("team", "#team", "criteria.yaml:4")


def test_a_file_carries_tests_of_itself() -> None:
    document = read_criteria(
        """
tenant: blue
agents: {a: {evaluations: []}}
tests:
  - name: first
    run: {agent: {name: a}}
    expect: {x: pass, y: {outcome: fail, score: 0.5}}
  - {name: second, trace: t.jsonl, agent: a, expect: {x: {outcome: not_evaluated, reason: over_limit}}}
""",
        "dir/criteria.yaml",
        {},
    )

    first, second = document.cases
    assert (first.name, first.run, first.trace, first.tenant) == (
        "first",
        {"agent": {"name": "a"}},
        None,
        "blue",
    )
    assert first.expect == {
        "x": ExpectedResultEntry(outcome="pass"),
        "y": ExpectedResultEntry(outcome="fail", score=0.5),
    }
    assert (second.run, second.trace, second.agent) == (None, "t.jsonl", "a")
    assert second.expect == {"x": ExpectedResultEntry(outcome="not_evaluated", reason="over_limit")}
    assert str(first.problem(("expect", "y"), "z")) == "dir/criteria.yaml:7: tests[0].expect.y: z"


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (
            "{}",
            [
                'tests[0]: missing key "name"',
                'tests[0]: missing key "expect"',
                'tests[0]: expected one of the keys "run", "runs" and "trace"',
            ],
        ),
        ("{name: x, expect: {a: pass}}", ['tests[0]: expected one of the keys "run", "runs" and "trace"']),
        (
            "{name: x, run: {}, trace: a, expect: {a: pass}}",
            ['tests[0]: expected one of the keys "run", "runs" and "trace"'],
        ),
        (
            "{name: x, run: {}, agent: a, expect: {a: pass}}",
            ['tests[0].agent: the agent of a "run" is named in it'],
        ),
        (
            "{name: x, run: {}, expect: {}}",
            ["tests[0].expect: expected at least 1 entry; found a mapping of keys to values"],
        ),
    ],
)
def test_a_mistake_in_a_test_is_told(test: str, expected: list[str]) -> None:
    lines = problems(f"agents: {{}}\ntests: [{test}]")

    assert [line.removeprefix("criteria.yaml:2: ") for line in lines] == expected


def test_two_tests_of_one_name_are_refused() -> None:
    text = """
agents: {}
tests:
  - {name: x, run: {agent: {name: a}}, expect: {e: pass}}
  - {name: y, run: {agent: {name: a}}, expect: {e: pass}}
  - {name: x, run: {agent: {name: b}}, expect: {e: pass}}
"""

    assert problems(text) == ['criteria.yaml:6: tests[2]: second test named "x", the first is on line 4']


def test_mistakes_in_criteria_and_in_tests_are_told_together() -> None:
    text = """
agents:
  a:
    evaluations:
      - {evaluator: tool-call-args, config: [], criteria: {tool_calls: [{name: x, args: {y: {$rage: 1}}}]}}
      - {evaluator: tool-repetition, severity: pager}
tests:
  - {name: x, run: {agent: {name: a}}, trace: b, expect: {tool-repetition: pas}}
"""

    assert [line.partition(":")[2].partition(": ")[::2] for line in problems(text)] == [
        ("5", "agents.a.evaluations[0].config: expected a mapping of keys to values; found an empty list"),
        ("5", "agents.a.evaluations[0].criteria.tool_calls[0].args.y.$rage: "
              'unknown matcher "$rage"; did you mean "$range"?'),
        ("6", 'agents.a.evaluations[1].severity: expected "page", "ticket" or "advisory"; '
              'found the text "pager"; did you mean "page"?'),
        ("8", 'tests[0].expect.tool-repetition: expected "pass", "fail", "error", "not_evaluated" or '
              '"skipped" or a mapping of keys to values; found the text "pas"'),
        ("8", 'tests[0]: expected one of the keys "run", "runs" and "trace"'),
    ]  # fmt: skip


def test_a_mistake_in_an_anchor_is_told_once_where_it_is_written() -> None:
    text = """
agents:
  a:
    evaluations:
      - &base
        evaluator: tool-call-order
        criteria: &order {tool_calls_order: [1]}
      - {evaluator: tool-call-order, name: second, criteria: *order}
      - {<<: *base, name: third}
"""

    assert problems(text) == [
        "criteria.yaml:7: agents.a.evaluations[0].criteria.tool_calls_order[0]: "
        "expected a text or a mapping of keys to values; found the number 1"
    ]


COUNTED = {
    "constraints": [{"absence": {"tool": "pay", "args": {"amount": 1}}}, {"not_co_existence": ["a", "b"]}]
}


@pytest.mark.parametrize(
    "entry",
    [
        {"evaluator": "tool-repetition"},
        {"evaluator": "tool-permission", "criteria": {"deny": ["pay"]}},
        {"evaluator": "tool-call-budget", "criteria": {"tools": {"pay": {"max": 1}}}},
        {"evaluator": "token-budget", "criteria": {"max_total_tokens": 9}},
        {"evaluator": "cost-budget", "criteria": {"max_cost": 0.1}},
        {"evaluator": "tool-constraints", "criteria": COUNTED},
        {"evaluator": "tool-constraints", "criteria": {"constraints": [{"count": "pay", "max": 1}]}},
    ],
)
def test_what_only_counts_calls_or_tokens_can_be_early(entry: JsonObject) -> None:
    assert one(**entry, early=True).early
    assert not one(**entry).early


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"evaluator": "tool-call-order", "criteria": ORDER}, "of tool-call-order; these can be early: "),
        ({"evaluator": "tool-error-recovery"}, "of tool-error-recovery; these can be early: "),
        (
            {
                "evaluator": "tool-call-budget",
                "config": {"include_failed": False},
                "criteria": {"max_calls": 1},
            },
            "by these criteria; expected upper limits",
        ),
        (
            {"evaluator": "tool-call-budget", "criteria": {"tools": {"pay": {"min": 1}}}},
            "by these criteria; expected upper limits",
        ),
        *(
            ({"evaluator": "tool-repetition", "config": {key: 3}}, "by these criteria; expected upper limits")
            for key in ("window", "cycle_threshold")
        ),
        *(
            (
                {
                    "evaluator": "tool-constraints",
                    "criteria": {"constraints": [{"absence": "a"}, constraint]},
                },
                "by these criteria; expected upper limits",
            )
            for constraint in (
                {"not_response": ["a", "b"]},
                {"absence": {"tool": "a", "status": "failed"}},
                {"absence": {"tool": "a", "result": "late"}},
                {"absence": {"answer": "sorry"}},
                {"count": "a", "min": 1},
                {"count": "a", "per": "args.to", "max": 1},
                {"not_co_existence": ["a", "b"], "same": "id"},
            )
        ),
    ],
)
def test_what_later_spans_can_undo_cannot_be_early(entry: JsonObject, expected: str) -> None:
    (line,) = refused(**entry, early=True)
    assert line.startswith(f".early: later spans can undo a failure {expected}")


@pytest.mark.parametrize(
    ("other", "key"),
    [
        ({"when": {"input": {"action": "x"}}}, "when"),
        ({"scope": "conversation"}, "scope"),
        ({"stage": "shadow"}, "stage: shadow"),
    ],
)
def test_which_runs_an_early_evaluation_is_about_is_known_before_they_are_over(
    other: JsonObject, key: str
) -> None:
    (line,) = refused(evaluator="tool-repetition", early=True, **other)
    assert line == f".early: cannot stand with {key}: expected an evaluation of its own that is early"


@pytest.mark.parametrize("agents", ["", " {}", " ~"])
def test_a_file_without_agents_is_warned_of(agents: str) -> None:
    document = read_criteria(f"owner: me\nagents:{agents}\n", "criteria.yaml", {})

    assert [str(warning) for warning in document.warnings] == [
        "criteria.yaml:2: agents: there are no agents: nothing is evaluated by this file"
    ]


WORDS = st.sampled_from([
    "agents", "evaluations", "evaluator", "name", "config", "criteria", "strict", "pass_threshold", "when",
    "input", "session", "span_attributes", "mute", "until", "stage", "$in", "$schema", "$input",
    "tool_calls_order", "toolCallsCount", "tool_calls", "args", "$regex", "default_evaluation_criteria",
    *evaluator_types(),
])  # fmt: skip
VALUES = st.recursive(
    WORDS | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=10,
)
ENTRIES = st.fixed_dictionaries(
    {"evaluator": st.sampled_from(list(evaluator_types()))},
    optional={
        "name": VALUES, "config": VALUES, "criteria": VALUES, "pass_threshold": VALUES, "severity": VALUES,
        "when": VALUES, "sample": VALUES, "stage": VALUES, "mute": VALUES, "any_of": VALUES,
    },
)  # fmt: skip


@settings(deadline=None)
@given(
    VALUES
    | st.fixed_dictionaries({
        "agents": st.dictionaries(
            st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=5),
            st.fixed_dictionaries({"evaluations": st.lists(ENTRIES | VALUES, max_size=3)}),
            max_size=3,
        )
    })
)  # fmt: skip
def test_any_content_is_either_loaded_or_refused(content: JsonValue) -> None:
    text = json.dumps(content)

    try:
        agents = read_criteria(text, "criteria.json", {}).agents
    except InvalidInput as found:
        lines = [str(problem) for problem in found.problems]
    else:
        lines = []
        assert isinstance(content, dict)
        assert [agent.pattern for agent in agents] == list(content["agents"] or {})  # type: ignore[arg-type]

    assert all(line.startswith("criteria.json:1: ") and "pydantic" not in line for line in lines)


def test_evaluations_that_agents_repeat_stand_on_their_own_lines() -> None:
    entry = "    - evaluator: tool-call-count\n      criteria: {tool_calls_count: {look: ['>', 0]}}\n"
    text = f"agents:\n  a:\n    evaluations:\n{entry}  b:\n    evaluations:\n{entry}"

    first, second = read_criteria(text, "c.yaml", {}).agents

    assert [agent.evaluations[0].source for agent in (first, second)] == ["c.yaml:4", "c.yaml:8"]
    assert first.evaluations[0].criteria_hash == second.evaluations[0].criteria_hash


def test_what_agents_repeat_with_mistakes_is_reported_for_each() -> None:
    entry = "    - evaluator: tool-call-count\n      criteria: {tool_calls_count: {look: [7, 0]}}\n"
    good = "    - evaluator: tool-repetition\n"
    text = f"agents:\n  a:\n    evaluations:\n{entry}{good}  b:\n    evaluations:\n{entry}{good}{good}"

    with pytest.raises(InvalidInput) as refused:
        read_criteria(text, "c.yaml", {})

    paths = [problem.path for problem in refused.value.problems]
    assert any(path.startswith("agents.a.evaluations[0]") for path in paths)
    assert any(path.startswith("agents.b.evaluations[0]") for path in paths)
    assert "agents.b.evaluations[2]" in paths


def test_true_written_for_one_is_not_what_repeats_one() -> None:
    entries = "".join(
        f"  {name}:\n    evaluations: [{{evaluator: tool-call-args, criteria: {{tool_calls: "
        f"[{{name: look, args: {{deep: {value}}}}}]}}}}]\n"
        for name, value in (("a", "1"), ("b", "true"), ("c", "1.0"))
    )

    agents = read_criteria(f"agents:\n{entries}", "c.yaml", {}).agents

    assert len({agent.evaluations[0].criteria_hash for agent in agents}) == 3
