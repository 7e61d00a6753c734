"""`python -m benchmarks.scratch_service SINK FOLDER [FILE]`: the service of FILE, isolated.

Its criteria, processors, results, and whether it has a journal and a store are those of the configuration;
listeners are on free ports of the loopback interface, everything leaves for the sink at SINK, and what it
writes lies in FOLDER. Nothing of the user's is reached or written.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from collector.configuration import ServiceConfig, load_configuration, parse_configuration
from collector.errors import StartupError
from collector.service import Service
from processors.documents import InvalidInput

_CONFIGURATION = """
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:0", server: {server}}}}}}}}}
exporters:
  otlp:
    endpoint: "{sink}"
    tls: {{insecure: true}}
    sending_queue: {{batch: {{flush_timeout: 100ms}}}}
service: {{telemetry: {{endpoint: "127.0.0.1:0", logs: {{level: error}}, self_check: {{enabled: false}}}}}}
"""

_WAITS = {"root_grace": 0.5, "multi_service_grace": 0.5, "incomplete_grace": 0.5, "idle_timeout": 2.0}
"""The longest waits, in seconds: they cost no CPU, and a measurement should be short."""


def scratch_configuration(config: ServiceConfig, sink: str, folder: Path) -> ServiceConfig:
    """`config` with its listeners, exporters and places replaced."""
    grpc = config.receivers.otlp.protocols.grpc
    text = _CONFIGURATION.format(server="grpcio" if grpc is None else grpc.server, sink=sink)
    local = parse_configuration(text, "sizing", {})
    processors = config.processors
    waits = processors.group_by_trace
    journal, store = config.journal, config.store
    if journal is not None:
        journal = journal.model_copy(update={"directory": folder / "journal"})
    if config.keeps_runs:
        store = store.model_copy(update={"path": folder / "runs.db"})
    return config.model_copy(
        update={
            "receivers": local.receivers,
            "processors": processors.model_copy(
                update={
                    "group_by_trace": waits.model_copy(
                        update={
                            name: longest
                            if isinstance(wait := getattr(waits, name), str)
                            else min(wait, longest)
                            for name, longest in _WAITS.items()
                        }
                    )
                }
            ),
            "exporters": local.exporters,
            "service": local.service,
            "journal": journal,
            "store": store,
            "page": None,
            "cluster": None,
        }
    )


async def _serve(config: ServiceConfig) -> None:
    service = Service(config, environment=os.environ, console=sys.stdout)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, service.request_stop)
    await service.run(lambda endpoints: print(f"ready: {endpoints}", file=sys.stderr, flush=True))


def main() -> None:
    """Serve until SIGTERM; announces its listeners on standard error."""
    sink, folder, *file = sys.argv[1:]
    try:
        config = load_configuration(Path(file[0]) if file else None, os.environ)
        serving = _serve(scratch_configuration(config, sink, Path(folder)))
        try:
            import uvloop
        except ImportError:  # platforms without it
            asyncio.run(serving)
        else:
            uvloop.run(serving)
    except (InvalidInput, StartupError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
