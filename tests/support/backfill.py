"""History for a Prometheus that starts with it: samples as OpenMetrics text, made into blocks by promtool."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PROGRAM = "promtool"
"""For `@pytest.mark.requires_program`."""


@dataclass(frozen=True)
class PastSeries:
    """One series of the past: points (unix seconds, value), the oldest first.

    `kind` is the OpenMetrics type. A counter's `name` ends in `_total`; the parts of a histogram (`_sum`,
    `_count`, `_bucket`) are written as series of kind `unknown`, which is the same to Prometheus.
    """

    name: str
    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]
    kind: str = "unknown"


async def write_blocks(series: Sequence[PastSeries], folder: Path) -> Path:
    """The folder with the blocks that hold `series`, below `folder`, which must be there."""
    text, blocks = folder / "history.om", folder / "blocks"
    text.write_text(_open_metrics(series))
    await _promtool("openmetrics", str(text), str(blocks))
    return blocks


async def record_blocks(server_url: str, rules: Path, folder: Path, *, start: float, end: float) -> Path:
    """The folder with the blocks of what the recording rules in `rules` give, second by second.

    Args:
        server_url: A Prometheus that holds what the rules read.
        rules: A rule file; its alerts are passed over.
        folder: Holds the blocks.
        start: The unix time of the first evaluation.
        end: The unix time of the last one.
    """
    blocks = folder / "recorded"
    await _promtool(
        "rules",
        *(f"--url={server_url}", f"--start={start:.0f}", f"--end={end:.0f}"),
        *("--eval-interval=1s", f"--output-dir={blocks}", str(rules)),
    )
    return blocks


async def _promtool(source: str, *arguments: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(PROGRAM, "tsdb", "create-blocks-from", source, *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()


def _open_metrics(series: Sequence[PastSeries]) -> str:
    families: dict[str, list[PastSeries]] = {}
    for one in series:
        families.setdefault(one.name, []).append(one)
    lines = []
    for name, members in families.items():
        family = name.removesuffix("_total") if members[0].kind == "counter" else name
        lines.append(f"# TYPE {family} {members[0].kind}")
        for member in members:
            labels = ",".join(f'{label}="{_escaped(value)}"' for label, value in member.labels.items())
            lines += [f"{name}{{{labels}}} {value!r} {moment:.3f}" for moment, value in member.points]
    return "\n".join([*lines, "# EOF", ""])


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
