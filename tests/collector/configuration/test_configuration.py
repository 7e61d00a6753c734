import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.configuration import (
    ServiceConfig,
    load_configuration,
    parse_configuration,
    print_configuration,
)
from collector.criteria import default_file
from collector.exporters import exporter_types
from collector.exporters.debug import DebugConfig
from collector.exporters.file import FileConfig
from collector.exporters.otlp_grpc import OtlpGrpcConfig
from collector.receivers.kafka.config import KafkaReceiverConfig
from processors.documents import InvalidInput


def load(text: str, **environment: str) -> ServiceConfig:
    return parse_configuration(text, "tracegrade.yaml", environment)


def problems(text: str, **environment: str) -> list[str]:
    with pytest.raises(InvalidInput) as found:
        load(text, **environment)
    return str(found.value).splitlines()


def test_without_a_file_everything_listens_on_this_machine_only() -> None:
    config = load_configuration(None, {})

    protocols = config.receivers.otlp.protocols
    assert protocols.grpc is not None
    assert protocols.http is not None
    assert protocols.grpc.endpoint == "127.0.0.1:4317"
    assert protocols.http.endpoint == "127.0.0.1:4318"
    assert config.telemetry_endpoint() == "127.0.0.1:9464"
    assert config.criteria_patterns() == ["builtin"]
    assert config.exporters == {"debug": DebugConfig()}
    assert config.processors.memory_limiter.limit_mib == 2048
    assert config.processors.group_by_trace.root_grace == "evidence"
    assert config.service.shutdown_timeout == 30.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "receivers:\nprocessors:\nexporters:\nresults:\nservice:\n",
        "receivers: {otlp: }\nprocessors: {evaluation: , group_by_trace: }\nexporters: {debug: }",
        "receivers: {otlp: {protocols: {grpc: , http: }}}\nservice: {telemetry: }\nexporters: {}",
    ],
)
def test_an_empty_section_has_its_defaults(text: str) -> None:
    assert load_configuration(None, {}) == load(text)


def test_the_example_of_everything_is_the_defaults() -> None:
    example = load_configuration(default_file("tracegrade.yaml"), {})

    assert example == load_configuration(None, {})


def test_what_the_example_has_commented_out_is_valid_too() -> None:
    lines = default_file("tracegrade.yaml").read_text().splitlines()
    start = lines.index("receivers:")
    text = "\n".join(
        line.replace("# ", "", 1)
        if line.lstrip().startswith("# ") and ":" in line.split("# ", 1)[1]
        else line
        for line in lines[start:]
        if not line.lstrip().startswith(("# Beside", "# [builtin", "# Every"))
    )

    keys = {"LANGFUSE_PUBLIC_KEY": "pk", "LANGFUSE_SECRET_KEY": "sk", "PHOENIX_API_KEY": "key"}
    keys["KAFKA_PASSWORD"] = "secret"
    content = yaml.safe_load(text)
    kafka = content["receivers"].pop("kafka")
    config = load(yaml.safe_dump(content), LANGFUSE_AUTH="Basic x", **keys)
    del content["journal"]  # one of the two keeps what is not delivered
    content["receivers"]["kafka"] = kafka
    with_kafka = load(yaml.safe_dump(content), LANGFUSE_AUTH="Basic x", **keys)

    assert with_kafka.receivers.kafka.model_fields_set == set(KafkaReceiverConfig.model_fields)
    scores = {"phoenix_annotations", "mlflow_assessments", "langfuse_scores"}
    spans = {"otlp", "otlp_http/langfuse", "file", "kafka"}
    assert set(config.exporters) == {"debug", "results_file", "kafka_results", *spans, *scores}
    assert config.telemetry_endpoint() == "0.0.0.0:9464"


@pytest.mark.parametrize(
    ("written", "folder", "expected"),
    [
        ("[builtin, criteria/*.yaml]", "", ["builtin", "criteria/*.yaml"]),
        ("[criteria/*.yaml, builtin]", "/etc", ["/etc/criteria/*.yaml", "builtin"]),
        ("[./builtin]", "", ["./builtin"]),
        ("[./builtin, builtin]", "/etc", ["/etc/builtin", "builtin"]),
        ("[builtin/]", "", ["./builtin"]),
        ("", "/etc", ["builtin"]),
    ],
)
def test_builtin_is_a_word_among_files(
    tmp_path: Path, written: str, folder: str, expected: list[str]
) -> None:
    text = f"processors: {{evaluation: {{criteria: {written}}}}}"

    config = parse_configuration(text, "tracegrade.yaml", {}, Path(folder) if folder else None)

    assert expected == config.criteria_patterns()
    printed = yaml.safe_load(print_configuration(config))
    assert expected == printed["processors"]["evaluation"]["criteria"]


def test_a_protocol_that_is_not_written_is_off() -> None:
    protocols = load("receivers: {otlp: {protocols: {http: {endpoint: ':0'}}}}").receivers.otlp.protocols

    assert protocols.grpc is None
    assert protocols.http is not None


@pytest.mark.parametrize(
    ("text", "emit"),
    [
        ("", ("span_event",)),
        ("results: {mode: hold}", ("span_event",)),
        ("results: {mode: stream}", ("log",)),
        ("results: {mode: verdicts_only}", ("log",)),
        ("results: {mode: stream, emit: [span]}", ("span",)),
        ("results: {emit: [span_event, span]}", ("span_event", "span")),
    ],
)
def test_the_form_of_verdicts_follows_from_whether_spans_wait(text: str, emit: tuple[str, ...]) -> None:
    assert emit == load(text).results.emit


def test_exporters_are_known_by_type_and_name() -> None:
    config = load(
        "exporters: {otlp: {endpoint: 'a:1'}, otlp/second: {endpoint: 'b:2'}, file: {path: spans.jsonl}}"
    )

    assert list(config.exporters) == ["otlp", "otlp/second", "file"]
    assert isinstance(config.exporters["otlp/second"], OtlpGrpcConfig)
    assert config.exporters["otlp/second"].endpoint == "b:2"
    assert config.exporters["file"] == FileConfig(path=Path("spans.jsonl"))


def test_the_endpoint_of_prometheus_counts_instead_of_that_of_telemetry() -> None:
    text = "exporters: {prometheus: {endpoint: ':1'}}\nservice: {telemetry: {endpoint: ':2'}}"

    assert load(text).telemetry_endpoint() == ":1"
    assert load(text).exporters == {}
    assert load(text.replace("{endpoint: ':1'}", "")).telemetry_endpoint() == ":2"


def test_relative_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    file = tmp_path / "tracegrade.yaml"
    file.write_text(
        "receivers: {otlp: {protocols: {grpc: {tls: {cert_file: a.pem, key_file: /k.pem}}}}}\n"
        "processors: {evaluation: {criteria: [criteria/*.yaml, ../x.yaml, /abs.yaml]}}\n"
        "exporters: {file: {path: spans.jsonl}, otlp: {endpoint: 'a:1', tls: {ca_file: ca.pem}}}\n"
    )

    config = load_configuration(file, {})

    grpc = config.receivers.otlp.protocols.grpc
    assert grpc is not None
    assert grpc.tls is not None
    assert (grpc.tls.cert_file, grpc.tls.key_file) == (tmp_path / "a.pem", Path("/k.pem"))
    assert config.criteria_patterns() == [
        f"{tmp_path}/criteria/*.yaml", f"{tmp_path}/../x.yaml", "/abs.yaml"
    ]  # fmt: skip
    assert config.exporters["file"] == FileConfig(path=tmp_path / "spans.jsonl")
    assert f"ca_file: {tmp_path}/ca.pem" in print_configuration(config)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5", ["tracegrade.yaml:1: expected a mapping of keys to values; found the number 5"]),
        ("a: [", [
            "tracegrade.yaml:2: not valid YAML: did not find expected node content while parsing a flow node"
        ]),
        ("recievers: {}", [
            'tracegrade.yaml:1: recievers: unknown key; did you mean "receivers"?',
        ]),
        ("receivers:\n  jaeger: {}", [
            "tracegrade.yaml:2: receivers.jaeger: unknown key; known: kafka, otlp",
        ]),
        ("receivers: {otlp: {protocols: {}}}", [
            "tracegrade.yaml:1: receivers.otlp.protocols: expected grpc, http or both"
        ]),
        ("receivers: {otlp: {protocols: {htp: }}}", [
            'tracegrade.yaml:1: receivers.otlp.protocols.htp: unknown key; did you mean "http"?'
        ]),
        ("processors: {batch: {}, memory_limiter: {limit_mib: lots}}", [
            "tracegrade.yaml:1: processors.memory_limiter.limit_mib: expected a whole number; "
            'found the text "lots"',
            "tracegrade.yaml:1: processors.batch: unknown key; "
            "known: evaluation, group_by_trace, memory_limiter",
        ]),
        ("processors: {group_by_trace: {services: {a: {rot_grace: 1s}}}}", [
            "tracegrade.yaml:1: processors.group_by_trace.services.a.rot_grace: unknown key; "
            'did you mean "root_grace"?',
        ]),
        ("processors: {evaluation: {criteria: []}}", [
            "tracegrade.yaml:1: processors.evaluation.criteria: expected at least 1 entry; "
            "found an empty list",
        ]),
        ("processors: {evaluation: {criteria: ['']}}", [
            "tracegrade.yaml:1: processors.evaluation.criteria[0]: "
            "expected builtin, or a file, a folder or a glob such as criteria/*.yaml"
        ]),
        ("exporters: [otlp]", [
            "tracegrade.yaml:1: exporters: expected a mapping of exporter ids to their settings"
        ]),
        ("exporters:\n  otpl: {}\n  zipkin: {}\n  otlp/: {}\n  prometheus/a: {}", [
            'tracegrade.yaml:2: exporters.otpl: unknown exporter type "otpl"; did you mean "otlp"?',
            'tracegrade.yaml:3: exporters.zipkin: unknown exporter type "zipkin"',
            'tracegrade.yaml:4: exporters.otlp/: not an exporter id: expected "otlp" or "otlp/name"',
            'tracegrade.yaml:5: exporters.prometheus/a: not an exporter id: expected "prometheus"',
        ]),
        ("exporters:\n  file:\n  otlp: {endpoint: 5, headers: {authorization: 123456}}", [
            'tracegrade.yaml:2: exporters.file: missing key "path"',
            "tracegrade.yaml:3: exporters.otlp.endpoint: expected a text; found the number 5; "
            "put it in quotes",
            "tracegrade.yaml:3: exporters.otlp.headers.authorization: expected a text; found a number; "
            "put it in quotes",
        ]),
        ("results: {mode: stream, emit: [span_event, log]}", [
            'tracegrade.yaml:1: results.emit: "span_event" needs mode "hold": in "stream" no span waits for '
            'its verdict; expected "log", "span" or both',
        ]),
        ("results: {mode: verdicts_only, annotations: [openinference]}", [
            'tracegrade.yaml:1: results.annotations: in "verdicts_only" they are written on the spans of '
            'the verdicts; expected "span" in emit',
        ]),
        ("results: {emit: [log, log]}", ["tracegrade.yaml:1: results.emit: expected each form once"]),
        ("results: {redact: ['[a-z', 'a*', 'ok', '(?=a)']}", [
            'tracegrade.yaml:1: results.redact: [0]: pattern "[a-z" does not compile: unterminated character '
            "set at position 0",
        ]),
        ("results: {redact: ['a*']}", [
            "tracegrade.yaml:1: results.redact: [0]: the pattern fits the empty text: expected what is to be "
            "hidden",
        ]),
        ("results: {content: hashed}", [
            'tracegrade.yaml:1: results.content: expected "full" or "none"; found the text "hashed"',
        ]),
        ("results: {mode: later}", [
            'tracegrade.yaml:1: results.mode: expected "hold", "stream" or "verdicts_only"; '
            'found the text "later"'
        ]),
        ("results: {mode: verdicts_only}\nexporters: {file: {path: a}, otlp: {endpoint: 'a:1'}}", [
            'tracegrade.yaml:2: exporters.file: nothing would go there: results.mode "verdicts_only" '
            "forwards no spans, and results.emit names no form that it takes",
        ]),
        ("results: {mode: verdicts_only, emit: [span]}\n"
         "exporters: {otlp: {endpoint: 'a:1', signals: [logs]}}", [
            "tracegrade.yaml:2: exporters.otlp: nothing would go there: it takes no spans, and results.emit "
            "names no form that it takes",
        ]),
        ("results: {mode: verdicts_only, emit: [span]}\nexporters: {file: {path: a, logs_path: b}}", [
            'tracegrade.yaml:2: exporters.file.logs_path: in results.mode "verdicts_only" it needs "log" in '
            "results.emit",
        ]),
        ("exporters: {kafka: {brokers: ['a:1'], logs_topic: lines}}", [
            'tracegrade.yaml:1: exporters.kafka.logs_topic: expected "logs" in signals',
        ]),
        ("exporters: {kafka: {brokers: ['a:1'], topic: b, logs_topic: b, signals: [traces, logs]}}", [
            "tracegrade.yaml:1: exporters.kafka.logs_topic: expected another topic than that of spans",
        ]),
        ("exporters: {otlp_http: {traces_endpoint: 'http://a/x', signals: [logs]}}", [
            "tracegrade.yaml:1: exporters.otlp_http.signals: there is no URL for logs",
        ]),
        ("journal: {directory: x, fsync: sometimes}", [
            'tracegrade.yaml:1: journal.fsync: expected "always", "interval" or "never"; '
            'found the text "sometimes"',
        ]),
        ("page: {endpoint: 0.0.0.0:9465}", [
            "tracegrade.yaml:1: page.endpoint: reachable from other machines: expected auth, or "
            "127.0.0.1",
        ]),
        ("page: {endpoint: ':9465', auth: {bearer_token_file: t}}", [
            "tracegrade.yaml:1: page.endpoint: reachable from other machines: expected tls, "
            "behind_proxy or 127.0.0.1",
        ]),
        ("page: {public_url: 'javascript:alert(1)'}", [
            "tracegrade.yaml:1: page.public_url: expected an address of http or https, such as "
            "https://tracegrade.example.com",
        ]),
        ("page: {trace_link: 'javascript:alert({trace_id})'}", [
            "tracegrade.yaml:1: page.trace_link: expected an address of http or https with {trace_id} in it",
        ]),
        ("page: {endpoint: 127.0.0.1:9464}", [
            "tracegrade.yaml:1: page.endpoint: service.telemetry.endpoint is the same address: expected "
            "another port",
        ]),
        ("store: {path: x}\nexporters: {results_file: {path: ./x}}", [
            "tracegrade.yaml:1: store.path: exporters.results_file.path is the same file",
        ]),
        ("store: {retention: 0}", [
            "tracegrade.yaml:1: store.retention: expected a number above 0; found the number 0",
        ]),
        ("journal: {max_bytes: 5}", [
            'tracegrade.yaml:1: journal: missing key "directory"',
            "tracegrade.yaml:1: journal.max_bytes: expected a number of at least 16777216; "
            "found the number 5",
        ]),
        ("service: {pipelines: {traces: {}}}", [
            "tracegrade.yaml:1: service.pipelines: there are no pipelines: every component written is active"
        ]),
        ("service: {shutdown_timeout: ${env:T}, telemetry: {endpoint: '${env:MISSING}'}}".replace(
            "${env:T}", "'${env:T}'"
        ), [
            'tracegrade.yaml:1: service.telemetry.endpoint: environment variable "MISSING" is not set; '
            'set it, or write "${env:MISSING:-default}"',
        ]),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place_and_what_was_expected(text: str, expected: list[str]) -> None:
    assert expected == problems(text, T="5s")


def test_a_server_that_is_not_built_is_refused_by_name() -> None:
    (line,) = problems("receivers: {otlp: {protocols: {grpc: {server: nghttp2}}}}")

    assert "receivers.otlp.protocols.grpc.server" in line
    assert "nghttp2" in line


def test_a_value_from_the_environment_is_never_told() -> None:
    text = """
receivers: {otlp: {protocols: {grpc: {endpoint: "${env:SECRET}"}}}}
exporters: {otlp: {endpoint: "http://${env:SECRET}"}}
service: {shutdown_timeout: "${env:SECRET}"}
"""

    lines = problems(text, SECRET="hunter-2")

    assert len(lines) == 3
    assert not any("hunter-2" in line for line in lines)
    assert "${env:SECRET}" in lines[0]


@pytest.mark.parametrize(
    ("written", "value"),
    [("${env:LIMIT}", 512), ('"${env:LIMIT}"', 512), ("${env:NONE:-64}", 64), ("${env:LIMIT}0", 5120)],
)
def test_numbers_can_come_from_the_environment(written: str, value: int) -> None:
    config = load(f"processors:\n  memory_limiter:\n    limit_mib: {written}\n", LIMIT="512")

    assert value == config.processors.memory_limiter.limit_mib


def test_dollars_are_escaped_by_doubling() -> None:
    config = load("exporters: {file: {path: 'a$$b-$${env:X}'}}")

    assert config.exporters["file"] == FileConfig(path=Path("a$b-${env:X}"))


def test_a_printed_configuration_has_every_default_and_loads_to_the_same() -> None:
    for text in (
        "",
        "exporters: {otlp: {endpoint: 'a:1'}, debug: {}}\nprocessors: {memory_limiter: {limit_mib: 7}}",
    ):
        config = load(text)

        assert config == load(print_configuration(config))
        assert "max_spans_per_trace: 50000" in print_configuration(config)


def test_a_printed_configuration_holds_no_secret() -> None:
    text = """
receivers: {otlp: {protocols: {grpc: {endpoint: "${env:LISTEN}"}}}}
exporters:
  otlp: {endpoint: "a:1", headers: {authorization: "Bearer abcdef", x-key: "${env:KEY}", y: "K ${env:KEY}"}}
  otlp_http: {endpoint: "https://user:pass@example.com/otel"}
"""

    printed = print_configuration(load(text, KEY="secret-1", LISTEN="10.1.2.3:4317"))

    for secret in ("abcdef", "secret-1", "user:pass", "10.1.2.3"):
        assert secret not in printed
    content = yaml.safe_load(printed)
    headers = content["exporters"]["otlp"]["headers"]
    assert headers == {"authorization": "**********", "x-key": "${env:KEY}", "y": "**********"}
    assert content["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"] == "${env:LISTEN}"
    assert content["exporters"]["otlp_http"]["endpoint"] == "https://**********@example.com/otel"


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"a: 1\nb: \xe9\n")

    for path, message in (
        (tmp_path / "none.yaml", ": cannot be read: No such file or directory"),
        (tmp_path, ": cannot be read: Is a directory"),
        (binary, ":2: not valid UTF-8"),
    ):
        with pytest.raises(InvalidInput) as found:
            load_configuration(path, {})
        assert str(found.value) == f"{path}{message}"


WORDS = st.sampled_from([
    "receivers", "otlp", "protocols", "grpc", "http", "endpoint", "processors", "memory_limiter",
    "group_by_trace", "services", "evaluation", "criteria", "exporters", "headers", "service", "telemetry",
    "results", "mode", "emit", "stream", "log", "journal", "pipelines", "tls", "5s", "a:1",
    *exporter_types(), "prometheus", "otlp/a",
])  # fmt: skip
VALUES = st.recursive(
    WORDS | st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="ascii"), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=10,
)


@settings(deadline=None)
@given(
    st.dictionaries(WORDS, VALUES, max_size=4)
    | st.fixed_dictionaries(
        {"exporters": st.dictionaries(WORDS, st.dictionaries(WORDS, VALUES, max_size=4), max_size=4)}
    )
)
def test_any_content_is_either_loaded_or_refused(content: object) -> None:
    text = yaml.safe_dump(content)

    try:
        config = load(text)
    except InvalidInput as found:
        lines = [str(problem) for problem in found.problems]
    else:
        lines = []
        assert print_configuration(config)

    assert all(line.startswith("tracegrade.yaml:") and "pydantic" not in line for line in lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "processors: {memory_limiter: {limit_mib: yes}}",
            "processors.memory_limiter.limit_mib: expected a number; found true",
        ),
        (
            "exporters: {debug: {max_runs_per_second: on}}",
            "exporters.debug.max_runs_per_second: expected a number; found true",
        ),
        (
            "exporters: {otlp: {endpoint: 'http://user:pass@a/b'}}",
            "exporters.otlp.endpoint: expected host:port such as \"tempo:4317\", got 'http://**********@a/b'",
        ),
        (
            "exporters: {file: {path: a}, results_file: {path: ./a}}",
            "exporters.results_file.path: exporters.file.path is the same file",
        ),
        (
            "{receivers: {kafka: {brokers: ['a:1', 'b:1']}}, "
            "exporters: {kafka: {brokers: ['b:1', 'a:1'], topic: otlp_spans}}}",
            "exporters.kafka.topic: receivers.kafka.topic is the same topic",
        ),
        ("exporters: {file: {path: ''}}", "exporters.file.path: expected the path of a file"),
        (
            "receivers: {otlp: {protocols: {grpc: {endpoint: ':1'}, http: {endpoint: '0.0.0.0:1'}}}}",
            "receivers.otlp.protocols.http.endpoint: receivers.otlp.protocols.grpc.endpoint is the same "
            "address: expected another port",
        ),
        (
            "exporters: {prometheus: {endpoint: '127.0.0.1:4318'}}",
            "exporters.prometheus.endpoint: receivers.otlp.protocols.http.endpoint is the same address: "
            "expected another port",
        ),
        (
            "processors: {evaluation: {model_prices: {m: {input: -1, output: 1}}}}",
            "processors.evaluation.model_prices.m.input: expected a number of at least 0; "
            "found the number -1",
        ),
        (
            "processors: {evaluation: {model_prices: {m: {input: 1}}}}",
            'processors.evaluation.model_prices.m: missing key "output"',
        ),
        (
            "processors: {evaluation: {dialects: [{name: Acme, agent: {name: a}}]}}",
            "processors.evaluation.dialects[0].name: expected a text of the form ^[a-z][a-z0-9_]*$; "
            'found the text "Acme"',
        ),
        (
            "service: {shutdown_timeout: {a: b}}",
            "service.shutdown_timeout: expected a duration such as 200ms, 5s, 1m or 1h30m",
        ),
        (
            "exporters: {otlp: {endpoint: '${env:NONE}'}}",
            'exporters.otlp.endpoint: environment variable "NONE" is not set; set it, or write '
            '"${env:NONE:-default}"',
        ),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused(text: str, message: str) -> None:
    assert problems(text) == [f"tracegrade.yaml:1: {message}"]


@pytest.mark.parametrize(
    "text",
    [
        "receivers: {otlp: {protocols: {grpc: {endpoint: '127.0.0.1:0'}}}}",
        "processors: {evaluation: {custom_evaluators: {mine: {entry_point: 'a.b:c'}}}}",
        "processors: {evaluation: {criteria: ['1e999', '1e5', '007', 'yes', '~']}}",
    ],
)
def test_what_is_printed_is_read_as_the_same_configuration(text: str) -> None:
    config = load(text)

    assert config == load(print_configuration(config))


EVERYTHING = """
receivers:
  otlp:
    protocols:
      grpc: &listener
        endpoint: ':1'
        tls: {cert_file: a, key_file: b, client_ca_file: c}
        auth: {bearer_token_file: d}
      http: {<<: *listener, endpoint: ':2'}
processors:
  evaluation:
    custom_evaluators: {my-check: {file: a.py}, other-check: {entry_point: 'a:b'}}
    dialects:
      - name: acme
        kind: {attribute: x, tool: [a], agent: [b], model: [c], workflow: [d]}
        tool: {name: a, call_id: b, arguments: c, result: d, error: e}
        agent: {name: a, id: b, version: c, session: d, input: e, output: f}
        model: {input: a, output: b}
  group_by_trace: {services: {nightly-batch: {idle_timeout: 5m}}}
exporters:
  otlp: {endpoint: 'a:1', headers: {a: b}, tls: {ca_file: a, cert_file: b, key_file: c}}
  otlp_http: {endpoint: 'http://a', tls: {}}
  otlp_http/whole: {traces_endpoint: 'http://a/b', logs_endpoint: 'http://a/c'}
  file: {path: x, logs_path: z}
  results_file: {path: y}
  debug: {}
  prometheus: {endpoint: ':3', resource_attributes: [a], series_expiry: 1h}
results: {emit: [span_event, log, span], annotations: [openinference]}
journal: {directory: a}
service:
  telemetry:
    traces: {otlp: {endpoint: 'a:1', headers: {a: b}}}
    logs: {otlp: {endpoint: 'a:1'}}
    self_check: {tls: {cert_file: a, key_file: b}}
"""


def test_every_printed_key_is_in_the_commented_configuration() -> None:
    written = default_file("tracegrade.yaml").read_text()
    key = re.compile(r"(?m)^( *)# ( *(?:(?:- )?[a-z_-]+(?:/[a-z]+)?:(?: |$)|# [a-z_]+: |\{))")
    commented = key.sub(r"\1\2", key.sub(r"\1\2", written))
    documented = {_documented(path) for path in _paths(yaml.safe_load(commented))}

    for text in (EVERYTHING, ""):
        printed = yaml.safe_load(print_configuration(load(text)))
        assert [] == [path for path in _paths(printed) if _documented(path) not in documented]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", ""),
        ("cluster: {peers: ['tracegrade-0:4317']}", "several replicas"),
        ("receivers: {kafka: {brokers: ['kafka:9092']}}", "partitions"),
    ],
)
def test_conversations_are_seen_whole_by_one_process_with_listeners_alone(text: str, why: str) -> None:
    hidden = load(text).hides_conversations

    assert (bool(why), True) == (bool(hidden), why in hidden)


def test_printing_everything_loads_to_the_same() -> None:
    config = load(EVERYTHING.replace("headers: {a: b}", "headers: {}"))

    assert config == load(print_configuration(config))


def _paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, list):
        yield from (inner for item in value for inner in _paths(item, path))
    for key, item in value.items() if isinstance(value, dict) else ():
        yield (*path, key)
        if key != "headers":
            yield from _paths(item, (*path, key))


def _documented(path: tuple[str, ...]) -> str:
    """`path` with one name for sections that take the same settings, of which one is documented in full."""
    text = ".".join(path)
    for pattern, same in (
        (r"^exporters\.(otlp_http(/\w+)?|file)\b", "exporters.otlp"),
        (r"^receivers\.otlp\.protocols\.(grpc|http)\b", "receivers.otlp.protocols.any"),
        (r"(\.group_by_trace\.services)\.[\w-]+", r"\1"),
        (r"(\.group_by_trace)\.services\.", r"\1."),
        (r"(\.custom_evaluators)\.[\w-]+", r"\1.any"),
        (r"(\.telemetry)\.(logs|traces)\.otlp", r"\1.any.otlp"),
    ):
        text = re.sub(pattern, same, text)
    return text


@pytest.mark.parametrize(
    ("text", "is_refused"),
    [
        ("results: {emit: [log]}", True),
        ("results: {mode: stream, emit: [log, span]}\nexporters: {file: {path: a}}", True),
        ("results: {emit: [log]}\nexporters: {otlp: {endpoint: 'a:1', signals: [traces]}}", True),
        ("results: {emit: [log]}\nexporters: {file: {path: a, logs_path: b}}", False),
        ("results: {emit: [log]}\nexporters: {otlp: {endpoint: 'a:1'}}", False),
        ("results: {mode: stream}", False),
        ("results: {mode: verdicts_only}\nexporters: {results_file: {path: a}}", False),
    ],
)
def test_log_records_that_no_exporter_takes_are_refused(text: str, is_refused: bool) -> None:
    if is_refused:
        with pytest.raises(InvalidInput) as refusal:
            load(text)
        message = '"log" goes nowhere: expected logs in the signals of an exporter, or a file with logs_path'
        assert f"tracegrade.yaml:1: results.emit: {message}" == str(refusal.value)
    else:
        assert load(text) == load(print_configuration(load(text)))


def test_a_journal_beside_kafka_is_refused() -> None:
    text = "receivers: {kafka: {brokers: ['localhost:9092']}}\njournal: {directory: journal}\n"

    with pytest.raises(InvalidInput) as caught:
        parse_configuration(text, "tracegrade.yaml", {})

    assert [
        "tracegrade.yaml:2: journal: Kafka keeps what is not delivered: expected no journal together "
        "with receivers.kafka"
    ] == [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "keeps_runs"),
    [
        ("", False),
        ("page: {}", True),
        ("page:", True),
        ("store: {path: runs.db}", True),
        ("store: off\npage: {}", False),
        ("store: false\npage: {}", False),
        ("store: {enabled: false, path: runs.db}", False),
    ],
)
def test_runs_are_kept_where_something_shows_them(text: str, keeps_runs: bool) -> None:
    config = load(text)

    assert keeps_runs == config.keeps_runs
    assert keeps_runs == load(print_configuration(config)).keeps_runs
