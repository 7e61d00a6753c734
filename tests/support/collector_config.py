"""What must hold in a configuration of the OpenTelemetry Collector, as far as it shows in the file."""

from processors.model import JsonObject
from tests.support.deploy_files import section

KINDS = ("receivers", "processors", "exporters", "extensions")


def problems(config: JsonObject) -> list[str]:
    """What the Collector would refuse or ignore: components that are not defined, or defined and not used."""
    used: dict[str, set[str]] = {kind: set() for kind in KINDS}
    found = []
    service = section(config, "service")
    extensions = service.get("extensions", [])
    assert isinstance(extensions, list)
    used["extensions"] = {str(name) for name in extensions}
    for pipeline, parts in section(service, "pipelines").items():
        assert isinstance(parts, dict)
        if pipeline.partition("/")[0] not in ("traces", "metrics", "logs"):
            found.append(f"{pipeline}: no signal")
        for kind in ("receivers", "processors", "exporters"):
            names = parts.get(kind, [])
            assert isinstance(names, list)
            if kind != "processors" and not names:
                found.append(f"{pipeline}: no {kind}")
            used[kind] |= {str(name) for name in names}
        processors = parts.get("processors")
        if isinstance(processors, list) and processors[:1] != ["memory_limiter"]:
            found.append(f"{pipeline}: memory_limiter is not the first processor")
    for kind in KINDS:
        defined = set(section(config, kind))
        found += [f"{kind}.{name} is not defined" for name in sorted(used[kind] - defined)]
        found += [f"{kind}.{name} is not used" for name in sorted(defined - used[kind])]
    return found


def listening_ports(config: JsonObject) -> set[int]:
    """The ports of all OTLP receivers."""
    return {
        int(str(section(receiver, "protocols", protocol)["endpoint"]).rpartition(":")[2])
        for receiver in section(config, "receivers").values()
        if isinstance(receiver, dict)
        for protocol in section(receiver, "protocols")
    }
