"""Writes what every recording gives, for comparing two states of the code.

    python -m tests.support.recorded_results FOLDER [RECORDINGS ...]

Writes one file of run lines into FOLDER for each folder of recorded requests below RECORDINGS (default:
those in `tests/data`); `diff -r` of two such folders shows each result, explanation or call that a change
altered.
"""

import argparse
import contextlib
import io
from pathlib import Path

from collector.cli import run_command

RECORDINGS = Path(__file__).parents[1] / "data"
INPUTS = ("*.binpb", "*.otlp.json", "*.jsonl", "input*.json")


def main(folder: Path, recordings: list[Path]) -> None:
    """Replay every folder of recorded requests below `recordings` into a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for root in recordings:
        holders = {path.parent for pattern in INPUTS for path in root.rglob(pattern)}
        for holder in sorted(holders):
            own_criteria = holder / "criteria.yaml"
            arguments = ["--criteria", str(own_criteria)] if own_criteria.exists() else []
            inputs = sorted({path for pattern in INPUTS for path in holder.glob(pattern)})
            output, errors = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
                code = run_command(["replay", "--format", "json", *arguments, *map(str, inputs)])
            name = "__".join((root.name, *holder.relative_to(root).parts))
            (folder / f"{name}.txt").write_text(
                f"exit {code}\n{output.getvalue()}{errors.getvalue()}", "utf-8"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("recordings", type=Path, nargs="*", default=[RECORDINGS])
    options = parser.parse_args()
    main(options.folder, options.recordings)
