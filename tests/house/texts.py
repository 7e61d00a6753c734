"""The texts that people can meet, as far as they stand in the code: messages, help, explanations.

    python -m tests.house.texts

writes them to `texts.txt` beside this file, a line each, so that a change of a text is seen in review.
"""

import ast
from collections.abc import Iterator

from tests.house.product_code import PRODUCT, ROOT, modules

SNAPSHOT = ROOT / "tests" / "house" / "texts.txt"
NO_TEXTS = "/lexicon"  # words of languages, not ours
FEWEST_WORDS = 3
SETTINGS = ("Config", "Criteria", "Model", "Settings")
"""How the names of models end, or those that they extend, of whose fields the docstrings are descriptions."""


def texts_of(module: ast.Module) -> Iterator[str]:
    """The literals of several words in a module; values that are put in show as `{}`.

    Of docstrings only those of settings and criteria, which schemas, help and the reference show.
    """
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    skipped: set[int] = set()
    for node in ast.walk(module):
        if isinstance(node, documented):
            described = node.body[1:] if isinstance(node, ast.ClassDef) and _has_settings(node) else []
            skipped.update(
                id(each.value) for each in node.body if isinstance(each, ast.Expr) and each not in described
            )
        elif isinstance(node, ast.JoinedStr):
            skipped.update(map(id, node.values))
        if id(node) in skipped:
            continue
        text = _text(node)
        if len(text.split()) >= FEWEST_WORDS:
            yield " ".join(text.split())


def _has_settings(model: ast.ClassDef) -> bool:
    names = [model.name, *(base.id for base in model.bases if isinstance(base, ast.Name))]
    return any(name.endswith(SETTINGS) for name in names)


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or "{}" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def all_texts() -> str:
    """The texts of the product, by module."""
    lines = []
    for path, module in modules(*PRODUCT).items():
        texts = sorted(set(texts_of(module))) if NO_TEXTS not in path else []
        lines += [f"# {path}", *texts, ""] if texts else []
    return "\n".join(lines)


if __name__ == "__main__":
    SNAPSHOT.write_text(all_texts(), "utf-8")
