"""Looking into Kubernetes manifests."""

from collections.abc import Sequence

from processors.model import JsonObject
from tests.support.deploy_files import section

_UNITS = {"Mi": 1.0, "Gi": 1024.0}


def of_kind(manifests: Sequence[JsonObject], kind: str) -> list[JsonObject]:
    """The manifests of one kind, in order."""
    return [manifest for manifest in manifests if manifest["kind"] == kind]


def pod(manifests: Sequence[JsonObject], name: str) -> JsonObject:
    """The pod that the one Deployment or StatefulSet called `name` makes."""
    (workload,) = [
        manifest
        for manifest in (*of_kind(manifests, "Deployment"), *of_kind(manifests, "StatefulSet"))
        if section(manifest, "metadata")["name"] == name
    ]
    return section(workload, "spec", "template", "spec")


def container(manifests: Sequence[JsonObject], name: str) -> JsonObject:
    """The one container of that pod."""
    containers = pod(manifests, name)["containers"]
    assert isinstance(containers, list)
    (only,) = containers
    assert isinstance(only, dict)
    return only


def memory_mebibytes(quantity: str) -> float:
    """`2Gi` or `512Mi` in MiB."""
    return float(quantity[:-2]) * _UNITS[quantity[-2:]]
