"""`python -m docs.generate`: write every reference page that is generated from the code."""

from collections.abc import Callable, Mapping
from pathlib import Path

from docs.generate.evaluators import evaluators_reference
from docs.generate.frameworks import frameworks_reference
from docs.generate.metrics import metrics_reference
from docs.generate.runs_file import runs_file_reference
from docs.generate.stability import stability_reference

_DOCS = Path(__file__).parents[1]
_PAGES: Mapping[str, Callable[[], str]] = {
    "evaluators.md": evaluators_reference,
    "frameworks.md": frameworks_reference,
    "metrics.md": metrics_reference,
    "runs-file.md": runs_file_reference,
    "stability.md": stability_reference,
}


def main() -> None:
    """Write the pages."""
    for name, page in _PAGES.items():
        (_DOCS / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
