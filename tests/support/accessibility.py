"""axe-core, run in a page that a browser shows (`make accessibility-install`)."""

import pytest

from tests.support.check_tools import PROJECT
from tests.support.chromium import Chromium

_SCRIPT = PROJECT / "tests" / "accessibility" / "node_modules" / "axe-core" / "axe.min.js"
_RUN = """
(async () => {
  document.querySelectorAll("details").forEach((part) => { part.open = true; });
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations.map((of) => [of.impact, of.id, ...of.nodes.map((node) => node.html)].join(" "));
})()
"""


async def accessibility_findings(browser: Chromium) -> list[str]:
    """What axe-core finds in the page as it is shown, with everything that is folded open.

    Findings of every impact and of every rule that is on by default, best practices included: each with
    its impact, its rule and the elements. Skips the test where axe-core is not installed.
    """
    if not _SCRIPT.exists():
        pytest.skip("axe-core is not installed (make accessibility-install)")
    await browser.evaluate(f"{_SCRIPT.read_text()};0")
    found: list[str] = await browser.evaluate(_RUN)
    return found
