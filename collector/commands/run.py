"""The command `tracegrade run`: the service, until it is asked to stop."""

import asyncio
import gc
import sys
from argparse import Namespace
from collections.abc import Coroutine

from collector.commands.command import EXIT_FAILED, EXIT_OK, Command, Surroundings, add_config
from collector.configuration import ServiceConfig, load_configuration
from collector.errors import BackgroundTaskDied
from collector.page import PageConfig
from collector.service import Service
from collector.telemetry import configure_logging


def _run(options: Namespace, surroundings: Surroundings) -> int:
    config = load_configuration(options.config, surroundings.environment)
    if options.config is None:
        config = config.model_copy(update={"page": PageConfig()})
    logs = config.service.telemetry.logs
    configure_logging(sys.stderr, level=logs.level, encoding=logs.encoding)
    return _run_loop(_serve(config, surroundings))


def _run_loop(serving: Coroutine[object, object, int]) -> int:
    try:
        import uvloop
    except ImportError:  # platforms without it
        return asyncio.run(serving)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serving)


async def _serve(config: ServiceConfig, surroundings: Surroundings) -> int:
    service = Service(config, environment=surroundings.environment, console=sys.stdout)
    surroundings.handle_signals(service.request_stop, service.request_reload)
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


COMMAND = Command(
    "run",
    "run the service (without a file: on this machine only, results on the console and on a page)",
    add_config,
    _run,
)
