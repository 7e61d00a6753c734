"""The image: its Dockerfile is linted, and its steps are performed and what they make is run."""

import json
import os
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from tests.deploy.dockerfile_steps import (
    ImageBuild,
    Stage,
    in_stage,
    read_dockerfile,
    run_in_namespace,
    system_mounts,
)
from tests.support.check_tools import PROJECT, assert_clean, find_tool, run_tool

DOCKERFILE = PROJECT / "Dockerfile"
INSTRUCTIONS = read_dockerfile(DOCKERFILE.read_text())

SPANS = json.dumps(
    {
        "resourceSpans": [
            {
                "scopeSpans": [
                    {
                        "spans": [
                            {
                                "traceId": "0af7651916cd43dd8448eb211c80319c",
                                "spanId": "b7ad6b7169203331",
                                "name": "invoke_agent",
                                "attributes": [
                                    {"key": "gen_ai.agent.name", "value": {"stringValue": "weather_agent"}}
                                ],
                            }
                        ]
                    }
                ]
            }
        ]
    }
)

# Sends a span, reads the metrics, tries to write where it may not; what it prints is looked at by the test.
PROBE = f"""
import json, os, urllib.request as http
headers = {{"content-type": "application/json"}}
spans = http.Request("http://127.0.0.1:4318/v1/traces", {SPANS!r}.encode(), headers)
print("export", http.urlopen(spans, timeout=20).status)
metrics = http.urlopen("http://127.0.0.1:9464/metrics", timeout=20).read().decode()
received = [line for line in metrics.splitlines() if line.startswith("tracegrade_spans_received_total ")]
print("received", [float(line.split()[1]) >= 1 for line in received])
print("user", os.getuid(), os.getgid(), os.getgroups())
for folder in ("/", "/etc/tracegrade", "/opt/tracegrade", "/tmp"):
    try:
        open(folder + "/written", "w").close()
        print("writable", folder)
    except OSError as error:
        print("refused", folder, error.strerror)
"""


def _arguments(name: str) -> list[str]:
    return [instruction.arguments for instruction in INSTRUCTIONS if instruction.name == name]


def test_hadolint_finds_nothing() -> None:
    assert_clean(run_tool(find_tool("hadolint"), DOCKERFILE))


def test_checkov_finds_nothing(tmp_path: Path) -> None:
    checkov = find_tool("checkov")

    done = run_tool(
        *(checkov, "--skip-download", "--framework", "dockerfile", "--compact", "--quiet"),
        *("--file", DOCKERFILE, "--output", "json"),
        folder=tmp_path,
    )

    report = json.loads(done.stdout)
    assert 0 < report["summary"]["passed"], done.stdout + done.stderr
    assert [] == report["results"]["failed_checks"]


def test_both_stages_start_from_one_image_that_is_pinned_by_digest() -> None:
    images = {value.partition(" AS ")[0] for value in _arguments("FROM")}

    assert 1 == len(images)
    assert re.fullmatch(r"python:3\.11\.\d+-slim-bookworm@sha256:[0-9a-f]{64}", images.pop())


def test_the_version_in_the_labels_is_that_of_the_package() -> None:
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]

    assert f"VERSION={version}" in _arguments("ARG")


def test_everything_that_is_copied_is_let_through_to_the_build() -> None:
    lines = (PROJECT / ".dockerignore").read_text().splitlines()
    allowed = [line.removeprefix("!") for line in lines if line.startswith("!")]
    copied = {
        source
        for arguments in _arguments("COPY")
        if not arguments.startswith("--from=")
        for source in arguments.split()[:-1]
    }

    assert "*" in lines
    assert set(allowed) <= {str(path.relative_to(PROJECT)) for name in allowed for path in PROJECT.glob(name)}
    assert set() == {
        source
        for source in copied
        if not any(source == name or source.startswith(f"{name}/") for name in allowed)
    }


@pytest.fixture
def image(tmp_path: Path) -> Stage:
    """What the steps of the Dockerfile make of this checkout."""
    for program in ("unshare", "chroot", "setpriv", "ip"):
        find_tool(program)
    if os.geteuid() != 0 or run_in_namespace(["mount -t tmpfs none /mnt"]).returncode:
        pytest.skip("mount namespaces need root")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pip"
    cache.mkdir(parents=True, exist_ok=True)
    return ImageBuild(PROJECT, tmp_path, cache).run(DOCKERFILE.read_text())


@pytest.mark.end_to_end
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_image_runs_without_privileges_on_a_read_only_root_and_stops_in_order(image: Stage) -> None:
    def inside(command: list[str]) -> str:
        return shlex.join(in_stage(image, command, image.environment))

    made = {str(path.relative_to(image.root)) for path in (image.root / "opt").iterdir()}
    (packages,) = (image.root / "opt/tracegrade/lib").glob("python3*/site-packages")
    installed = {path.name for path in packages.iterdir()}

    done = run_in_namespace(
        [
            "ip link set lo up",
            f"mount --bind {image.root} {image.root}",
            f"mount -o remount,bind,ro {image.root}",
            *system_mounts(image.root),
            f"{inside(image.entrypoint + image.command)} & service=$!",
            # Docker asks every ten seconds; here as often as it can be answered, for two minutes at most.
            f"deadline=$((SECONDS + 120)); until {inside(image.healthcheck)}; do",
            "  kill -0 $service; [ $SECONDS -lt $deadline ]; sleep 0.2; done",
            inside(["python", "-c", PROBE]),
            f"kill -{image.stop_signal.removeprefix('SIG')} $service",
            "code=0; wait $service || code=$?; echo exit $code",
        ],
        "--net",
    )

    assert {"opt/tracegrade"} == made
    assert {"collector", "processors", "grpc"} <= installed
    assert {"pip", "hatchling", "pytest", "mypy"}.isdisjoint(installed)
    said = done.stdout + done.stderr
    assert 0 == done.returncode, said
    lines = done.stdout.splitlines()
    assert {"ready", "export 200", "received [True]", "user 10001 10001 []", "exit 0"} <= set(lines), said
    assert [
        f"refused {folder} Read-only file system"
        for folder in ("/", "/etc/tracegrade", "/opt/tracegrade", "/tmp")
    ] == [line for line in lines if line.startswith(("refused", "writable"))]
