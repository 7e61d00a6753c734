"""Memory and cores of the container are those of the control groups, of either version."""

import os
from pathlib import Path

import pytest

from collector.configuration import parse_configuration
from collector.container import container_memory, usable_cores


def _tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1048576\n"}, 1048576),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n",
          "sys/fs/cgroup/a/memory.max": "2097152\n"}, 2097152),
        ({"proc/self/cgroup": "9:cpu,memory:/docker/x\n",
          "sys/fs/cgroup/memory/memory.limit_in_bytes": "3145728\n"}, 3145728),
        ({"proc/self/cgroup": "9:memory:/x\n", "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "4194304\n",
          "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 4194304),
        ({"proc/self/cgroup": "odd\n"}, None),
    ],
)  # fmt: skip
def test_the_limit_of_either_version_of_cgroups_is_found(
    tmp_path: Path, files: dict[str, str], expected: int | None
) -> None:
    assert expected == container_memory(_tree(tmp_path, files))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 8),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, 8),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "400000 100000\n"}, 4),
        ({"sys/fs/cgroup/cpu.max": "250000 100000\n"}, 2),
        ({"sys/fs/cgroup/cpu.max": "25000 100000\n"}, 1),  # a quarter of a core
        ({"sys/fs/cgroup/cpu.max": "6400000 100000\n"}, 8),  # more than there are
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "500000 100000\n",
          "sys/fs/cgroup/a/cpu.max": "150000 50000\n"}, 3),
        ({"proc/self/cgroup": "4:cpu,cpuacct:/docker/x\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000\n",
          "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 2),
        ({"proc/self/cgroup": "4:cpu,cpuacct:/x\n", "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "150000\n",
          "sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "50000\n",
          "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
          "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ({"sys/fs/cgroup/cpu.max": "100000 0\n"}, 8),
        ({"sys/fs/cgroup/cpu.max": "odd\n"}, 8),
    ],
)  # fmt: skip
def test_a_quota_counts_where_it_is_less_than_the_set_of_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], expected: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))

    assert expected == usable_cores(_tree(tmp_path, files))


@pytest.mark.parametrize(("cores", "processes"), [(1, 0), (2, 1), (4, 3)])
def test_auto_leaves_a_core_to_the_process_that_receives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int, processes: int
) -> None:
    files = {"sys/fs/cgroup/cpu.max": f"{cores}00000 100000\n"}
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(usable_cores, "__defaults__", (_tree(tmp_path, files),))
    config = parse_configuration("processors: {evaluation: {processes: auto}}", "t", {})

    assert processes == config.processors.evaluation.grading_processes
