"""The command `tracegrade health`: whether a running service is ready, for containers and people."""

import sys
from argparse import ArgumentParser, Namespace
from http import HTTPStatus

from collector.commands.arguments import add_argument, add_config, endpoint_argument
from collector.commands.command import EXIT_FAILED, EXIT_OK, Command, CommandContext
from collector.config_fields import reachable_address
from collector.tools.http_client import NoAnswerError, query


def query_readiness(endpoint: str) -> tuple[bool, str]:
    """Whether the service at `endpoint`, as configuration writes it, is ready; its answer or the error."""
    try:
        status, answer = query(reachable_address(endpoint), "/readyz")
    except NoAnswerError as error:
        return False, str(error)
    return status == HTTPStatus.OK, answer.decode(errors="replace").strip()


def _add_arguments(parser: ArgumentParser) -> None:
    add_config(parser)
    default = "default: the telemetry endpoint of the configuration"
    add_argument(parser, "--endpoint", endpoint_argument, "HOST:PORT", default)


def _run(options: Namespace, context: CommandContext) -> int:
    endpoint = options.endpoint or context.service_file(options.config).telemetry_endpoint()
    is_ready, answer = query_readiness(endpoint)
    print(answer, file=sys.stdout if is_ready else sys.stderr)
    return EXIT_OK if is_ready else EXIT_FAILED


HEALTH = Command(_add_arguments, _run)
