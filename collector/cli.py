"""The command line: the only reader of arguments, environment and signals, and the only place that exits."""

import argparse
import asyncio
import gc
import json
import os
import signal
import sys
from collections.abc import Coroutine, Sequence
from importlib.metadata import version

from rich.console import Console

from collector.clock import SystemClock
from collector.commands import baseline as baseline_command
from collector.commands import rules as rules_command
from collector.commands.argument_types import endpoint_argument, path_argument, path_text, traffic_argument
from collector.commands.compare import ChangeKind, compare
from collector.commands.demo import DemoError, run_demo
from collector.commands.health import ask_readiness
from collector.commands.import_criteria import SourceKind, import_criteria
from collector.commands.output_console import OutputConsole, give_up_output
from collector.commands.replay import Format, replay
from collector.configuration.criteria_files import CriteriaStore, load_criteria
from collector.configuration.criteria_tests import run_criteria_tests
from collector.configuration.loading import (
    ServiceConfig,
    load_configuration,
    print_configuration,
    schema_documents,
)
from collector.errors import BackgroundTaskDied, StartupError
from collector.service import Service
from collector.telemetry.logs import configure_logging
from collector.workers.custom_evaluators import CustomEvaluators, load_custom_evaluators
from collector.workers.offline import OfflineWorkers
from processors.criteria.criteria_writer import EVERY_AGENT
from processors.documents.problem import ProblemsFound

EXIT_OK, EXIT_FAILED, EXIT_UNUSABLE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit the process with its exit code."""
    sys.exit(run_command(sys.argv[1:] if arguments is None else arguments))


def run_command(arguments: Sequence[str]) -> int:
    """Run the command that `arguments` name; its exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.command(options)
        print(end="", flush=True)
    except ProblemsFound as error:
        print(error, file=sys.stderr)
        return EXIT_UNUSABLE
    except StartupError as error:
        print(f"tracegrade cannot start: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output went away, for example `| head`
        give_up_output()
        return EXIT_OK
    except OSError as error:
        what = error.filename or "the output"
        print(f"cannot read or write {what}: {error.strerror or error}", file=sys.stderr)
        give_up_output()
        return EXIT_UNUSABLE
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tracegrade",
        description="Grades AI agents' tool use online from their OpenTelemetry traces. No model is called.",
    )
    parser.add_argument("--version", action="version", version=f"tracegrade {version('tracegrade')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    run = commands.add_parser(
        "run", help="run the service (without a file: on this machine only, results on the console)"
    )
    _add_config(run)
    run.set_defaults(command=_run)

    validate = commands.add_parser(
        "validate",
        help="check the service file and the criteria, and run their tests; prints every problem",
    )
    _add_config(validate)
    validate.add_argument(
        "criteria", nargs="*", type=path_text, metavar="CRITERIA", help="further criteria files or folders"
    )
    validate.set_defaults(command=_validate)

    printing = commands.add_parser(
        "print-config", help="print the configuration in force, defaults included, secrets masked"
    )
    _add_config(printing)
    printing.set_defaults(command=_print_config)

    schema = commands.add_parser("schema", help="print a JSON schema for editors and CI")
    schema.add_argument("document", nargs="?", choices=["config", "criteria", "objectives"], default="config")
    schema.set_defaults(command=_schema)

    replaying = commands.add_parser(
        "replay",
        help="grade recorded traffic offline",
        description=(
            "Grade recorded traffic with exactly the code of the service. Exit code 0: every evaluation "
            "passed or was not evaluated; 1: one failed or errored; 2: unusable input or criteria, or "
            "nothing to read. With --compare, 0: no outcome differs; 1: one does, of an evaluation that both "
            "sets gave; 2: as above."
        ),
    )
    replaying.add_argument(
        "paths",
        nargs="+",
        type=traffic_argument,
        metavar="PATH",
        help="*.binpb, *.otlp.json, *.jsonl, *.runs.jsonl, a folder of them, or - (standard input)",
    )
    replaying.add_argument(
        "--criteria", type=path_text, metavar="FILE_OR_DIR", help="default: the built-in reference-free set"
    )
    replaying.add_argument(
        "--compare",
        nargs=2,
        type=path_text,
        metavar=("OLD", "NEW"),
        help="grade by two criteria files or folders, and print only what is not the same",
    )
    replaying.add_argument(
        "--format", choices=[choice.value for choice in Format], default=Format.TABLE.value
    )
    replaying.add_argument(
        "--config",
        type=path_argument,
        metavar="FILE",
        help="a service file: its dialects are read, and its criteria unless --criteria is given",
    )
    replaying.add_argument(
        "--explain",
        action="store_true",
        help="show which dialect read which span as what, and why spans were left out "
        "(on standard error unless the format is table)",
    )
    replaying.add_argument(
        "--require-evaluated", action="store_true", help="exit with 1 when nothing was graded"
    )
    replaying.set_defaults(command=_replay)

    importing = commands.add_parser(
        "import",
        help="write a criteria file from an evaluation folder of UiPath or a suite of Letta",
        description=(
            "Write the deterministic evaluators and test cases of another tool as a criteria file. Standard "
            "error tells what was not carried over, a line each. Exit code 0: everything was; 1: something "
            "was not; 2: the files cannot be used, or nothing was carried over."
        ),
    )
    importing.add_argument(
        "kind",
        nargs="?",
        choices=[kind.value for kind in SourceKind],
        help="default: recognised by the content of PATH",
    )
    importing.add_argument(
        "path",
        type=path_argument,
        metavar="PATH",
        help="a folder with evaluators/ and eval-sets/, or one evaluation set; or a suite.yaml",
    )
    importing.add_argument(
        "--agent", default=EVERY_AGENT, metavar="NAME", help="the agent to grade (default: every agent)"
    )
    importing.add_argument(
        "--output",
        type=path_argument,
        metavar="FILE",
        help="a file that is not there yet (default: standard output)",
    )
    importing.set_defaults(command=_import)

    baseline = commands.add_parser(
        "baseline", help=baseline_command.HELP, description=baseline_command.DESCRIPTION
    )
    baseline_command.add_arguments(baseline)
    baseline.set_defaults(command=_baseline)

    rules = commands.add_parser("rules", help=rules_command.HELP, description=rules_command.DESCRIPTION)
    rules_command.add_arguments(rules)
    rules.set_defaults(command=_rules)

    demo = commands.add_parser(
        "demo", help="start the service, send it scripted agents' traffic, show the verdicts"
    )
    demo.set_defaults(command=_demo)

    health = commands.add_parser("health", help="ask a running service whether it is ready; exit code 0 or 1")
    _add_config(health)
    health.add_argument(
        "--endpoint",
        type=endpoint_argument,
        metavar="HOST:PORT",
        help="default: the telemetry endpoint of the configuration",
    )
    health.set_defaults(command=_health)
    return parser


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", type=path_argument, metavar="FILE", help="the service file (default: built-in defaults)"
    )


def _run(options: argparse.Namespace) -> int:
    config = load_configuration(options.config, os.environ)
    logs = config.service.telemetry.logs
    configure_logging(sys.stderr, level=logs.level, encoding=logs.encoding)
    return _run_loop(_serve(config))


def _run_loop(serving: Coroutine[object, object, int]) -> int:
    try:
        import uvloop
    except ImportError:  # platforms without it
        return asyncio.run(serving)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serving)


async def _serve(config: ServiceConfig) -> int:
    service = Service(config, environment=os.environ, console=sys.stdout)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, service.request_stop)
    loop.add_signal_handler(signal.SIGHUP, service.request_reload)
    try:
        await service.run(_announce)
    except BackgroundTaskDied as error:
        print(error, file=sys.stderr)
        return EXIT_FAILED
    return EXIT_OK


def _announce(endpoints: str) -> None:
    gc.collect()
    gc.freeze()  # what was loaded by now stays: later collections need not look at it
    print(f"tracegrade ready: {endpoints}", file=sys.stderr, flush=True)


def _validate(options: argparse.Namespace) -> int:
    config = load_configuration(options.config, os.environ)
    evaluators = load_custom_evaluators(config.processors.evaluation)
    checked = []
    if options.config is not None or not options.criteria:
        subject = str(options.config or "the built-in configuration")
        checked.append(_checked_criteria(subject, config.criteria_patterns(), evaluators))
    for path in options.criteria:
        checked.append(_checked_criteria(path, [path], evaluators))
    print("\n".join(checked))
    return EXIT_OK


def _checked_criteria(subject: str, patterns: Sequence[str] | None, evaluators: CustomEvaluators) -> str:
    """Load the criteria and run the tests in them; what was found sound, for people."""
    store = CriteriaStore(patterns, environment=os.environ, evaluators=evaluators.known)
    for warning in store.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    with OfflineWorkers(evaluators) as workers:
        problems = run_criteria_tests(store.cases, store.current, workers)
    if problems:
        raise ProblemsFound(problems)
    tests = f", {len(store.cases)} of {len(store.cases)} tests pass" if store.cases else ""
    return f"{subject}: valid, criteria for {store.current.describe()}{tests}"


def _print_config(options: argparse.Namespace) -> int:
    print(print_configuration(load_configuration(options.config, os.environ)), end="")
    return EXIT_OK


def _schema(options: argparse.Namespace) -> int:
    print(json.dumps(schema_documents()[options.document], indent=2, ensure_ascii=False))
    return EXIT_OK


def _import(options: argparse.Namespace) -> int:
    kind = SourceKind(options.kind) if options.kind else None
    imported = import_criteria(options.path, kind, options.agent)
    for problem in imported.left_out:
        print(problem, file=sys.stderr)
    counts = f"{imported.evaluations} evaluations imported, {len(imported.left_out)} notes"
    if not imported.evaluations:
        print(f"{counts}: nothing was written", file=sys.stderr)
        return EXIT_UNUSABLE
    if options.output is None:
        print(imported.text, end="")
    else:
        try:
            with options.output.open("x", encoding="utf-8") as file:
                file.write(imported.text)
        except OSError as error:
            print(f"cannot write {options.output}: {error.strerror}", file=sys.stderr)
            return EXIT_UNUSABLE
    print(counts, file=sys.stderr)
    return EXIT_FAILED if imported.left_out else EXIT_OK


def _compare(options: argparse.Namespace) -> int:
    for name in ("criteria", "explain", "require_evaluated"):
        if getattr(options, name):
            print(f"--compare and --{name.replace('_', '-')} exclude each other", file=sys.stderr)
            return EXIT_UNUSABLE
    if options.format == Format.JUNIT.value:
        print("--compare prints json or table, not junit", file=sys.stderr)
        return EXIT_UNUSABLE
    config = load_configuration(options.config, os.environ)
    evaluators = load_custom_evaluators(config.processors.evaluation)
    old, new = (
        load_criteria([criteria], environment=os.environ, evaluators=evaluators.known)
        for criteria in options.compare
    )
    with OfflineWorkers(evaluators) as workers:
        comparison = compare(
            options.paths,
            old,
            new,
            output_format="json" if options.format == Format.JSON.value else "table",
            output=sys.stdout,
            progress=Console(stderr=True) if sys.stderr.isatty() else None,
            dialects=config.own_dialects(),
            unix_nano=SystemClock().unix_nano(),
            workers=workers,
        )
    for warning in comparison.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if not comparison.spans and not comparison.runs:
        print(f"no span and no agent run in {', '.join(map(str, options.paths))}", file=sys.stderr)
        return EXIT_UNUSABLE
    return EXIT_FAILED if comparison.changes[ChangeKind.FLIP] else EXIT_OK


def _replay(options: argparse.Namespace) -> int:
    if options.compare:
        return _compare(options)
    config = load_configuration(options.config, os.environ)
    patterns = [options.criteria] if options.criteria else config.criteria_patterns()
    output_format = Format(options.format)
    evaluators = load_custom_evaluators(config.processors.evaluation)
    criteria = load_criteria(patterns, environment=os.environ, evaluators=evaluators.known)
    with OfflineWorkers(evaluators) as workers:
        summary = replay(
            options.paths,
            criteria,
            output_format=output_format,
            output=sys.stdout,
            progress=Console(stderr=True) if sys.stderr.isatty() and not options.explain else None,
            dialects=config.own_dialects(),
            explanation=OutputConsole(stderr=output_format is not Format.TABLE) if options.explain else None,
            unix_nano=SystemClock().unix_nano(),
            workers=workers,
        )
    for warning in summary.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if not summary.spans and not summary.runs:
        print(f"no span and no agent run in {', '.join(map(str, options.paths))}", file=sys.stderr)
        return EXIT_UNUSABLE
    if summary.failed or (options.require_evaluated and not summary.graded):
        return EXIT_FAILED
    return EXIT_OK


def _baseline(options: argparse.Namespace) -> int:
    baseline_command.run_baseline(options, os.environ, SystemClock())
    return EXIT_OK


def _rules(options: argparse.Namespace) -> int:
    rules_command.run_rules(options, os.environ, SystemClock())
    return EXIT_OK


def _demo(_: argparse.Namespace) -> int:
    try:
        run_demo(OutputConsole())
    except DemoError as error:
        print(f"the demonstration failed: {error}", file=sys.stderr)
        return EXIT_FAILED
    return EXIT_OK


def _health(options: argparse.Namespace) -> int:
    endpoint = options.endpoint or load_configuration(options.config, os.environ).telemetry_endpoint()
    is_ready, answer = ask_readiness(endpoint)
    print(answer, file=sys.stdout if is_ready else sys.stderr)
    return EXIT_OK if is_ready else EXIT_FAILED


if __name__ == "__main__":
    main()
