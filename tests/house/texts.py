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


def texts_of(module: ast.Module) -> Iterator[str]:
    """The literals of several words in a module, without docstrings; values that are put in show as `{}`."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    skipped: set[int] = set()
    for node in ast.walk(module):
        if isinstance(node, documented):
            skipped.update(id(each.value) for each in node.body if isinstance(each, ast.Expr))
        elif isinstance(node, ast.JoinedStr):
            skipped.update(map(id, node.values))
        if id(node) in skipped:
            continue
        text = _text(node)
        if len(text.split()) >= FEWEST_WORDS:
            yield " ".join(text.split())


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
