"""A Dockerfile performed without a container daemon: its steps are run into empty folders.

Each stage is a folder. Only what an image of Python has is bound into it, read-only: the programs of this
machine and its interpreter. Commands run in it through chroot, in mount namespaces of their own that end
with them. Covers the instructions that the project's Dockerfile uses, and refuses any other.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
_ETC = ("passwd", "group", "nsswitch.conf", "hosts", "resolv.conf", "ld.so.cache", "pip.conf", "ssl")
_CONNECTION_SETTINGS = (
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE"),
    *(
        "PIP_CERT",
        "PIP_INDEX_URL",
        "PIP_EXTRA_INDEX_URL",
        "PIP_TRUSTED_HOST",
        "PIP_DEFAULT_TIMEOUT",
        "PIP_PROXY",
    ),
)
_IGNORED = ("EXPOSE", "LABEL")
_PYTHON = Path(sys.base_prefix)


@dataclass(frozen=True)
class Instruction:
    """One instruction of a Dockerfile, its continued lines joined."""

    name: str
    arguments: str


@dataclass
class Stage:
    """What a stage has become: a root folder and the settings for processes in it."""

    root: Path
    environment: dict[str, str]
    workdir: str = "/"
    user: str = "0:0"
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    healthcheck: list[str] = field(default_factory=list)
    stop_signal: str = "SIGTERM"


def read_dockerfile(text: str) -> list[Instruction]:
    """The instructions of a Dockerfile in order."""
    instructions, parts = [], list[str]()
    for line in text.splitlines():
        if line.lstrip().startswith("#") or not line.strip():
            continue
        parts.append(line.removesuffix("\\").strip())
        if not line.endswith("\\"):
            name, _, arguments = " ".join(parts).partition(" ")
            instructions.append(Instruction(name.upper(), arguments.strip()))
            parts = []
    return instructions


class ImageBuild:
    """Performs a Dockerfile; the folders of its stages are made under `folder`.

    `cache` stands for what BuildKit keeps between builds (`RUN --mount=type=cache`).
    """

    def __init__(self, context: Path, folder: Path, cache: Path) -> None:
        self._context, self._folder, self._cache = context, folder, cache
        self._stages: dict[str, Stage] = {}

    def run(self, dockerfile: str) -> Stage:
        """Perform all instructions; what the last stage has become.

        Raises:
            RuntimeError: a command failed; with what it said.
            ValueError: an instruction that is not covered.
        """
        stage: Stage | None = None
        for instruction in read_dockerfile(dockerfile):
            if instruction.name == "FROM":
                stage = self._begin(instruction.arguments)
            elif instruction.name != "ARG":
                assert stage is not None
                self._perform(instruction, stage)
        assert stage is not None
        return stage

    def _begin(self, arguments: str) -> Stage:
        name = arguments.partition(" AS ")[2] or str(len(self._stages))
        root = self._folder / name
        # As the base image has it: an interpreter first on the PATH, system folders, /tmp.
        stage = Stage(root, {"PATH": f"{_PYTHON}/bin:/usr/local/bin:/usr/bin:/bin"})
        for folder in (*SYSTEM_FOLDERS, "/dev", "/proc", "/root", "/opt", "/tmp", str(_PYTHON)):
            (root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
        (root / "tmp").chmod(0o1777)
        for entry in _ETC:
            source, target = Path("/etc") / entry, root / "etc" / entry
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("private"))
            elif source.exists():
                target.parent.mkdir(exist_ok=True)
                shutil.copy2(source, target)
        self._stages[name] = stage
        return stage

    def _perform(self, instruction: Instruction, stage: Stage) -> None:
        name, arguments = instruction.name, instruction.arguments
        if name == "RUN":
            self._run(arguments, stage)
        elif name == "COPY":
            self._copy(shlex.split(arguments), stage)
        elif name == "ENV":
            for pair in shlex.split(arguments):
                key, _, value = pair.partition("=")
                stage.environment[key] = value.replace("$PATH", stage.environment["PATH"])
        elif name == "WORKDIR":
            stage.workdir = arguments
            (stage.root / arguments.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif name == "USER":
            stage.user = arguments
        elif name == "ENTRYPOINT":
            stage.entrypoint = json.loads(arguments)
        elif name == "CMD":
            stage.command = json.loads(arguments)
        elif name == "HEALTHCHECK":
            stage.healthcheck = json.loads(arguments.partition("CMD ")[2])
        elif name == "STOPSIGNAL":
            stage.stop_signal = arguments
        elif name not in _IGNORED:
            raise ValueError(f"{name} is not covered")

    def _copy(self, arguments: list[str], stage: Stage) -> None:
        source_root = self._context
        if arguments[0].startswith("--from="):
            source_root = self._stages[arguments.pop(0).removeprefix("--from=")].root
        *sources, target = arguments
        to = stage.root / os.path.join(stage.workdir, target).lstrip("/")
        for source in sources:
            found = source_root / source.lstrip("/")
            if found.is_dir():
                ignore = shutil.ignore_patterns("__pycache__") if source_root == self._context else None
                shutil.copytree(found, to, symlinks=True, ignore=ignore, dirs_exist_ok=True)
            elif target.endswith("/"):
                to.mkdir(parents=True, exist_ok=True)
                shutil.copy2(found, to / found.name)
            else:
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(found, to)

    def _run(self, arguments: str, stage: Stage) -> None:
        mounts = system_mounts(stage.root)
        while arguments.startswith("--mount=type=cache,target="):
            option, _, arguments = arguments.partition(" ")
            target = option.rpartition("=")[2]
            (stage.root / target.lstrip("/")).mkdir(parents=True, exist_ok=True)
            mounts.append(f"mount --bind {shlex.quote(str(self._cache))} {stage.root}{target}")
        environment = {"HOME": "/root", **_connection_settings(), **stage.environment}
        command = in_stage(stage, ["/bin/sh", "-c", arguments], environment)
        done = run_in_namespace([*mounts, f"exec {shlex.join(command)}"])
        if done.returncode:
            raise RuntimeError(f"{arguments}\n{done.stdout}\n{done.stderr}")


def system_mounts(root: Path) -> list[str]:
    """Shell commands that bind what a base image has into `root`, read-only."""
    lines = []
    for folder in (*SYSTEM_FOLDERS, str(_PYTHON)):
        if Path(folder).exists():
            lines += [
                f"mount --rbind {folder} {root}{folder}",
                f"mount -o remount,bind,ro {root}{folder}",
            ]
    return [*lines, f"mount --rbind /dev {root}/dev", f"mount -t proc proc {root}/proc"]


def in_stage(stage: Stage, command: list[str], environment: dict[str, str]) -> list[str]:
    """`command` as it runs in a container: in the root and folder of the stage, as its user, unprivileged."""
    user, _, group = stage.user.partition(":")
    unprivileged = [] if user == "0" else ["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
    return [
        *("chroot", str(stage.root), "/usr/bin/env", "-i", "-C", stage.workdir),
        *(f"{key}={value}" for key, value in environment.items()),
        *("/usr/bin/setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", *unprivileged),
        *command,
    ]


def run_in_namespace(
    script: list[str], *options: str, timeout: float = 500.0
) -> subprocess.CompletedProcess[str]:
    """Run shell lines in mount and process namespaces of their own; all of it ends with the last line."""
    namespace = ["unshare", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child", *options]
    return subprocess.run(
        [*namespace, "/bin/bash", "-c", "\n".join(["set -e", *script])],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=timeout,
    )


def _connection_settings() -> dict[str, str]:
    """What this machine says about reaching a package index."""
    return {key: value for key, value in os.environ.items() if key in _CONNECTION_SETTINGS}
