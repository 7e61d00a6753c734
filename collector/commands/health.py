"""The command `tracegrade health`: asks a running service whether it is ready, for containers and people."""

import sys
from argparse import ArgumentParser, Namespace
from http import HTTPStatus

from collector.commands.command import (
    EXIT_FAILED,
    EXIT_OK,
    Command,
    Surroundings,
    add_config,
    endpoint_argument,
)
from collector.config_fields import reachable_address
from collector.configuration import load_configuration
from collector.tools.http_client import NoAnswerError
from collector.tools.running_service import ask


def ask_readiness(endpoint: str) -> tuple[bool, str]:
    """Whether the service at `endpoint` (as configuration writes it) is ready; what it said or why not."""
    try:
        status, answer = ask(reachable_address(endpoint), "/readyz")
    except NoAnswerError as error:
        return False, str(error)
    return status == HTTPStatus.OK, answer.decode(errors="replace").strip()


def _add_arguments(parser: ArgumentParser) -> None:
    add_config(parser)
    parser.add_argument(
        "--endpoint",
        type=endpoint_argument,
        metavar="HOST:PORT",
        help="default: the telemetry endpoint of the configuration",
    )


def _run(options: Namespace, surroundings: Surroundings) -> int:
    endpoint = (
        options.endpoint or load_configuration(options.config, surroundings.environment).telemetry_endpoint()
    )
    is_ready, answer = ask_readiness(endpoint)
    print(answer, file=sys.stdout if is_ready else sys.stderr)
    return EXIT_OK if is_ready else EXIT_FAILED


COMMAND = Command(
    "health", "ask a running service whether it is ready; exit code 0 or 1", _add_arguments, _run
)
