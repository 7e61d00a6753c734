"""What frameworks and conventions call things is known to dialects and data tables, and to nobody else."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from processors.frameworks.discovery import discover_dialects

ROOT = Path(__file__).parents[2]
DATA_TABLES = frozenset(
    {
        "processors/frameworks/shapes/placeholder_names.py",
        "processors/frameworks/otel_genai/supported.py",
        "processors/frameworks/openinference/supported.py",
    }
)
WRITERS = frozenset(
    {
        "collector/tools/demo/demo_agent.py",
        "collector/result_writer.py",
        "collector/results_config.py",
        "collector/tools/self_check/traces.py",
        "processors/results/evaluation_span.py",
        "processors/results/openinference_annotations.py",
        "processors/results/result_attributes.py",
        "processors/results/result_records.py",
    }
)
"""Files that write telemetry under these names, or in a form that the user chooses by such a name."""

SHARED_FORMS = frozenset(
    {
        "processors/frameworks/shapes/recorded_events.py",
        "processors/frameworks/shapes/recorded_run.py",
        "processors/frameworks/shapes/span_event_messages.py",
    }
)
"""Shapes that stand outside of the dialects that read them, as dialects may not import each other."""

NAMESPACES = tuple(
    sorted(
        {f"{key.partition('.')[0]}." for dialect in discover_dialects() for key in dialect.keys if "." in key}
    )
)
"""What the attribute keys of the built-in dialects begin with."""

PRODUCTS = re.compile(
    r"langchain|langgraph|langfuse|langsmith|llama_?index|crew_?ai|autogen|smolagents|pydantic_ai|logfire|"
    r"open_?inference|traceloop|openllmetry|openlit|mlflow|mastra|vercel|livekit|laminar|voltagent|haystack|"
    r"strands|agno|semantic_?kernel|spring_?ai|claude|gemini|vertex|bedrock|agentcore|google_?adk",
    re.IGNORECASE,
)


def modules() -> list[Path]:
    """All modules but those that may know."""
    found = [*ROOT.glob("processors/**/*.py"), *ROOT.glob("collector/**/*.py")]
    return [
        path
        for path in sorted(found)
        if path.parent.name != "dialects"
        and path.relative_to(ROOT).as_posix() not in DATA_TABLES | WRITERS | SHARED_FORMS
    ]


def texts_and_names(path: Path) -> Iterator[tuple[int, str]]:
    """Every string that is no documentation, and every name that is bound, with its line."""
    tree = ast.parse(path.read_text("utf-8"))
    documentation = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in documentation:
            if isinstance(node.value, str):
                yield node.lineno, node.value
            elif isinstance(node.value, bytes):
                yield node.lineno, node.value.decode("latin-1")
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def test_the_namespaces_are_those_of_the_conventions() -> None:
    assert {"gen_ai.", "openinference.", "mcp.", "ai.", "mlflow."} <= set(NAMESPACES)


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_attribute_of_a_convention_is_named(path: Path) -> None:
    found = [
        (line, text)
        for line, text in texts_and_names(path)
        if text.startswith(NAMESPACES) and " " not in text
    ]

    assert [] == found


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_framework_is_named(path: Path) -> None:
    found = [(line, text) for line, text in texts_and_names(path) if PRODUCTS.search(text)]

    assert [] == found
