"""Whether what the configuration allows to be held fits the container that the service runs in.

A process that its container kills reports nothing; so what cannot fit is refused at the start.
"""

from dataclasses import dataclass

from collector.configuration import ServiceConfig
from processors.documents import InvalidInput, Problem

FREE_SHARE = 0.2
"""The part of the container's memory that is left to the process itself, and to traces being graded."""

_MIB = 1024 * 1024
PROCESS_BYTES = 128 * _MIB
"""What a process that grades takes."""
_HELD_SHARE, _IN_FLIGHT_SHARE, _STORE_SHARE = 0.5, 0.25, 0.0625


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """What may be held, in bytes; `store_bytes` is that of runs in memory: 0 where none are, or in a file."""

    held_bytes: int
    in_flight_bytes: int
    store_bytes: int


def plan_memory(config: ServiceConfig, container_bytes: int | None) -> MemoryPlan:
    """What `config` allows, in a container of that size.

    Limits that are not configured are lowered until they fit, but the largest message always has room.
    `limit_mib` counts held spans with all queues; runs that the store keeps in memory are in addition to it.

    Raises:
        InvalidInput: configured limits do not fit; with what to change.
    """
    limiter, otlp = config.processors.memory_limiter, config.receivers.otlp
    held, in_flight = limiter.limit_bytes, otlp.max_bytes_in_flight
    if container_bytes is None:
        return MemoryPlan(held, in_flight, config.store.memory_bytes() if config.keeps_runs else 0)
    store = config.store.memory_bytes(int(container_bytes * _STORE_SHARE)) if config.keeps_runs else 0
    processes = config.processors.evaluation.grading_processes * PROCESS_BYTES
    most = int(container_bytes * (1 - FREE_SHARE)) - store - processes
    if "max_bytes_in_flight" not in otlp.model_fields_set:
        in_flight = min(in_flight, int(container_bytes * _IN_FLIGHT_SHARE))
    in_flight = max(in_flight, otlp.max_message_bytes)
    if "limit_mib" not in limiter.model_fields_set:
        held = max(min(held, int(container_bytes * _HELD_SHARE), most - in_flight), 1)
    if held + in_flight > most:
        text = _too_much(held, in_flight, store, processes, container_bytes)
        raise InvalidInput([Problem("", 0, "", text)])
    return MemoryPlan(held, in_flight, store)


def _too_much(held: int, in_flight: int, store: int, processes: int, container: int) -> str:
    room = (int(container * (1 - FREE_SHARE)) - store - processes - in_flight) // _MIB
    change = (
        f"lower limit_mib to {room}" if room > 0 else "lower receivers.otlp.max_bytes_in_flight and limit_mib"
    )
    needed = -(-(held + in_flight + store + processes) // int(_MIB * (1 - FREE_SHARE)))
    kept = f", store.max_mib ({store // _MIB} MiB, in memory without a path)" if store else ""
    if processes:
        kept += f", processors.evaluation.processes ({processes // _MIB} MiB)"
    return (
        f"processors.memory_limiter.limit_mib ({held // _MIB} MiB, queues included){kept} and "
        f"receivers.otlp.max_bytes_in_flight ({in_flight // _MIB} MiB) are together more than 80 % of the "
        f"container's memory ({container // _MIB} MiB): it would be killed before it refuses; {change}, or "
        f"give the container {needed} MiB"
    )
