"""The command line: the only reader of arguments, environment and signals, and the only place that exits."""

import argparse
import asyncio
import gc
import json
import os
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Coroutine, Sequence
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

from collector.configuration import ServiceConfig, load_configuration, print_configuration, schema_documents
from collector.criteria_files import load_criteria
from collector.demo import DemoError, run_demo
from collector.errors import BackgroundTaskDied, StartupError
from collector.replay import Format, replay
from collector.service import Service
from collector.telemetry.logs import configure_logging
from processors.problem import ProblemsFound

EXIT_OK, EXIT_FAILED, EXIT_UNUSABLE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit the process with its exit code."""
    sys.exit(run_command(sys.argv[1:] if arguments is None else arguments))


def run_command(arguments: Sequence[str]) -> int:
    """Run the command that `arguments` name; its exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.command(options)
    except ProblemsFound as error:
        print(error, file=sys.stderr)
        return EXIT_UNUSABLE
    except StartupError as error:
        print(f"tracegrade cannot start: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output went away, for example `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
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
        "validate", help="check the service file and the criteria; prints every problem"
    )
    _add_config(validate)
    validate.add_argument(
        "criteria", nargs="*", metavar="CRITERIA", help="criteria files or folders to check as well"
    )
    validate.set_defaults(command=_validate)

    printing = commands.add_parser(
        "print-config", help="print the configuration in force, defaults included, secrets masked"
    )
    _add_config(printing)
    printing.set_defaults(command=_print_config)

    schema = commands.add_parser("schema", help="print a JSON schema for editors and CI")
    schema.add_argument("document", nargs="?", choices=["config", "criteria"], default="config")
    schema.set_defaults(command=_schema)

    replaying = commands.add_parser(
        "replay",
        help="grade recorded traffic offline",
        description=(
            "Grade recorded traffic with exactly the code of the service. Exit code 0: every evaluation "
            "passed or was not evaluated; 1: one failed or errored; 2: unusable input or criteria, or "
            "nothing to read."
        ),
    )
    replaying.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="*.binpb, *.otlp.json, *.jsonl, *.runs.jsonl, or a folder of them",
    )
    replaying.add_argument(
        "--criteria", metavar="FILE_OR_DIR", help="default: the built-in reference-free set"
    )
    replaying.add_argument(
        "--format", choices=[choice.value for choice in Format], default=Format.TABLE.value
    )
    replaying.add_argument(
        "--require-evaluated", action="store_true", help="exit with 1 when nothing was graded"
    )
    replaying.set_defaults(command=_replay)

    demo = commands.add_parser(
        "demo", help="start the service, send it scripted agents' traffic, show the verdicts"
    )
    demo.set_defaults(command=_demo)

    health = commands.add_parser("health", help="ask a running service whether it is ready; exit code 0 or 1")
    _add_config(health)
    health.add_argument(
        "--endpoint", metavar="HOST:PORT", help="default: the telemetry endpoint of the configuration"
    )
    health.set_defaults(command=_health)
    return parser


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="the service file (default: built-in defaults)"
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
    checked = []
    if options.config is not None or not options.criteria:
        evaluations = load_criteria(config.criteria_patterns(), environment=os.environ)
        checked.append(
            f"{options.config or 'the built-in configuration'}: valid, criteria for {evaluations.describe()}"
        )
    for path in options.criteria:
        checked.append(
            f"{path}: valid, criteria for {load_criteria([path], environment=os.environ).describe()}"
        )
    print("\n".join(checked))
    return EXIT_OK


def _print_config(options: argparse.Namespace) -> int:
    print(print_configuration(load_configuration(options.config, os.environ)), end="")
    return EXIT_OK


def _schema(options: argparse.Namespace) -> int:
    print(json.dumps(schema_documents()[options.document], indent=2, ensure_ascii=False))
    return EXIT_OK


def _replay(options: argparse.Namespace) -> int:
    criteria = load_criteria([options.criteria] if options.criteria else None, environment=os.environ)
    summary = replay(
        options.paths,
        criteria,
        output_format=Format(options.format),
        output=sys.stdout,
        progress=Console(stderr=True) if sys.stderr.isatty() else None,
    )
    for warning in summary.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if not summary.spans and not summary.runs:
        print(f"no span and no agent run in {', '.join(map(str, options.paths))}", file=sys.stderr)
        return EXIT_UNUSABLE
    if summary.failed or (options.require_evaluated and not summary.graded):
        return EXIT_FAILED
    return EXIT_OK


def _demo(_: argparse.Namespace) -> int:
    try:
        run_demo(Console())
    except DemoError as error:
        print(f"the demonstration failed: {error}", file=sys.stderr)
        return EXIT_FAILED
    return EXIT_OK


def _health(options: argparse.Namespace) -> int:
    endpoint = options.endpoint or load_configuration(options.config, os.environ).telemetry_endpoint()
    try:
        with urllib.request.urlopen(f"http://{endpoint}/readyz", timeout=5) as response:
            print(response.read().decode().strip())
        return EXIT_OK
    except urllib.error.HTTPError as error:
        print(error.read().decode().strip(), file=sys.stderr)
    except (OSError, ValueError) as error:
        print(f"no answer from http://{endpoint}/readyz: {error}", file=sys.stderr)
    return EXIT_FAILED


if __name__ == "__main__":
    main()
