"""The command `tracegrade doctor`: which hops of the configuration in force do not work, and what to do."""

import argparse
import asyncio
import json
from collections.abc import Sequence

from collector.commands.arguments import add_argument, add_config, add_flag, argument_type, path_argument
from collector.commands.command import EXIT_FAILED, EXIT_OK, Command, CommandContext
from collector.tools.doctor import Hop, Sender, State, examine
from collector.tools.prometheus_api import PrometheusApi

_DESCRIPTION = """
Send a trace through every hop of the configuration in force, and report for each whether it was accepted and
what to do if not. Run it on the machine of the service, as its user, while it runs. The traces are the
service's own: they enter no series, store or page; each backend gets one span (and one log record, if it
receives verdicts that way) named "tracegrade doctor". Exit code 0: every hop works; 1: one does not; 2: the
configuration cannot be read.
"""
_MARKS = {State.WORKS: "ok", State.BROKEN: "BROKEN", State.UNKNOWN: "?"}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    add_argument(
        parser,
        "--endpoint",
        _endpoint,
        "URL",
        "send there, as a sender would, instead of to each listener: host:port, or http(s)://host:port",
    )
    add_argument(
        parser,
        "--ca-file",
        path_argument,
        "FILE",
        "trust these authorities, as a sender would, instead of the listener's certificate itself",
    )
    add_argument(
        parser, "--token-file", path_argument, "FILE", "send the first token in it (default: the listener's)"
    )
    prometheus = "check scraping, rules and Alertmanager there as well"
    add_argument(parser, "--prometheus", argument_type(PrometheusApi), "URL", prometheus)
    add_flag(parser, "--json", "print one JSON object")


def _run(options: argparse.Namespace, context: CommandContext) -> int:
    config = context.service_file(options.config)
    hops = asyncio.run(
        examine(
            config,
            clock=context.clock,
            sender=Sender(options.endpoint, options.ca_file, options.token_file),
            prometheus=options.prometheus,
        )
    )
    works = all(hop.state is State.WORKS for hop in hops)
    if options.json:
        print(
            json.dumps(
                {"works": works, "hops": [hop.to_json() for hop in hops]}, ensure_ascii=False, indent=2
            )
        )
    else:
        _print(hops)
    return EXIT_OK if works else EXIT_FAILED


def _print(hops: Sequence[Hop]) -> None:
    for hop in hops:
        print(f"{_MARKS[hop.state]:<7} {hop.where}: {hop.observed}")
        if hop.expected:
            print(f"        expected: {hop.expected}")
        if hop.advice:
            print(f"        do: {hop.advice}")
    broken = sum(hop.state is not State.WORKS for hop in hops)
    print(f"{len(hops)} hops, " + (f"{broken} of them do not work" if broken else "all work"))


def _endpoint(text: str) -> str:
    scheme, separator, address = text.rpartition("://")
    host, _, port = address.rstrip("/").rpartition(":")
    if (separator and scheme not in ("http", "https")) or not host or not port.isdecimal() or "/" in host:
        raise argparse.ArgumentTypeError(f"expected host:port or http(s)://host:port, got {text!r}")
    return text.rstrip("/")


DOCTOR = Command(_add_arguments, _run, _DESCRIPTION)
