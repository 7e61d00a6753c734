"""The command `tracegrade health`: asks a running service whether it is ready, for containers and people."""

import http.client
import sys
import urllib.error
import urllib.request
from argparse import ArgumentParser, Namespace

from collector.commands.command import (
    EXIT_FAILED,
    EXIT_OK,
    Command,
    Surroundings,
    add_config,
    endpoint_argument,
)
from collector.config_fields import parse_endpoint
from collector.configuration import load_configuration

_TIMEOUT_SECONDS = 5.0


def ask_readiness(endpoint: str) -> tuple[bool, str]:
    """Whether the service at `endpoint` (as configuration writes it) is ready, and what it said or why not.

    Asked directly, whatever proxy the environment names for other traffic.
    """
    host, port = parse_endpoint(endpoint)
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/readyz"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_TIMEOUT_SECONDS) as response:
            return True, response.read().decode(errors="replace").strip()
    except urllib.error.HTTPError as error:
        with error:
            return False, error.read().decode(errors="replace").strip()
    except (OSError, ValueError, http.client.HTTPException) as error:
        return False, f"no answer from {url}: {error}"


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
