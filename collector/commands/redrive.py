"""The command `tracegrade redrive`: resends what backends rejected permanently."""

import asyncio
import sys
from argparse import ArgumentParser, Namespace

from collector.commands.arguments import add_argument, add_config, duration_argument, path_argument
from collector.commands.command import EXIT_FAILED, EXIT_OK, Command, CommandContext, unusable
from collector.exporters import ExporterContext, redrive_file
from collector.telemetry import Metrics
from processors.documents import did_you_mean


def _add_arguments(parser: ArgumentParser) -> None:
    add_argument(
        parser, "file", path_argument, "FILE", "the file of service.dead_letters, or OTLP/JSON lines"
    )
    parser.add_argument(
        "--to", required=True, metavar="EXPORTER", help="the exporter of the service file, such as otlp/tempo"
    )
    add_argument(
        parser,
        "--timeout",
        duration_argument,
        "DURATION",
        "how long a request is retried while the backend does not accept it (default: 1m)",
        default=60.0,
    )
    add_config(parser)


def _run(options: Namespace, context: CommandContext) -> int:
    config = context.service_file(options.config)
    exporter = config.exporters.get(options.to)
    if exporter is None:
        known = ", ".join(config.exporters)
        hint = did_you_mean(options.to, list(config.exporters))
        raise unusable(f'--to: no exporter "{options.to}"{hint}; configured: {known}')
    exporting = ExporterContext(clock=context.clock, metrics=Metrics(), console=sys.stdout)
    sending = redrive_file(options.file, options.to, exporter, exporting, patience_seconds=options.timeout)
    try:
        outcome = asyncio.run(sending)
    except FileNotFoundError:
        raise unusable(f"{options.file}: no such file") from None
    except ValueError as error:
        raise unusable(f"--to: {error}") from None
    for problem in outcome.problems:
        print(f"{options.file}: {problem}", file=sys.stderr)
    rejected = f", {outcome.rejected_spans} spans of them not stored" if outcome.rejected_spans else ""
    print(f"{outcome.sent} requests sent{rejected}, {outcome.kept} remain in {options.file}")
    return EXIT_FAILED if outcome.kept else EXIT_OK


REDRIVE = Command(_add_arguments, _run)
