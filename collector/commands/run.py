"""The command `tracegrade run`: the service, until it is requested to stop."""

import asyncio
import gc
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Coroutine
from threading import Thread

from collector.commands.arguments import add_config, add_flag
from collector.commands.command import EXIT_FAILED, EXIT_OK, Command, CommandContext
from collector.configuration import ServiceConfig
from collector.criteria import default_file
from collector.errors import BackgroundTaskDied
from collector.garbage_collection import collection_paused
from collector.page import PageConfig
from collector.service import Service
from collector.telemetry import configure_logging

_YOUNG_OBJECTS = 5_000
"""After how many new objects the garbage collector runs. At Python's own 700 most of them are still in use,
since their traces wait for more spans, and would be traversed in vain."""


def _run(options: Namespace, context: CommandContext) -> int:
    config = context.service_file(options.config)
    if options.config is None:
        config = config.model_copy(update={"page": PageConfig()})
        if options.demo:
            evaluation = config.processors.evaluation
            criteria = (*evaluation.criteria, str(default_file("criteria/demo.yaml")))
            evaluation = evaluation.model_copy(update={"criteria": criteria})
            processors = config.processors.model_copy(update={"evaluation": evaluation})
            config = config.model_copy(update={"processors": processors})
    logs = config.service.telemetry.logs
    configure_logging(sys.stderr, level=logs.level, encoding=logs.encoding)
    with collection_paused():  # until the service is ready
        return _run_loop(_serve(config, context, plays_demo=options.demo))


def _run_loop(serving: Coroutine[object, object, int]) -> int:
    try:
        import uvloop
    except ImportError:  # platforms without it
        return asyncio.run(serving)
    return uvloop.run(serving)


async def _serve(config: ServiceConfig, context: CommandContext, *, plays_demo: bool) -> int:
    service = Service(config, environment=context.environment, console=sys.stdout)
    context.handle_signals(service.request_stop, service.request_reload)
    try:
        await service.run(_announce_and_play if plays_demo else _announce)
    except BackgroundTaskDied as error:
        print(error, file=sys.stderr)
        return EXIT_FAILED
    return EXIT_OK


def _announce(endpoints: str) -> None:
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
    # What is loaded by now stays, and later collections need not traverse it. One now would find a thousand
    # objects among some millions.
    gc.freeze()
    gc.enable()
    print(f"tracegrade ready: {endpoints}", file=sys.stderr, flush=True)


def _announce_and_play(endpoints: str) -> None:
    from collector.tools.demo import send_scripted_runs  # what it needs is loaded for it alone

    _announce(endpoints)
    named = dict(pair.split("=", 1) for pair in endpoints.split())
    if "grpc" in named:
        Thread(target=send_scripted_runs, args=(named["grpc"],), name="demo", daemon=True).start()
        print("the scripted agents of `tracegrade demo` send their runs", file=sys.stderr, flush=True)
    if "page" in named:
        print(f"the page is at http://{named['page']}", file=sys.stderr, flush=True)


def _add_arguments(parser: ArgumentParser) -> None:
    add_config(parser)
    demo = "have the scripted agents of `tracegrade demo` send it their runs (OTLP/gRPC, no TLS or token)"
    add_flag(parser, "--demo", demo)


RUN = Command(_add_arguments, _run)
