"""The corpus and thousands of varied inputs: no crash, no hang, no growth.

`make fuzz` takes millions, guided by coverage; what it finds becomes part of the corpus.
"""

import pytest

from processors.spans import NATIVE, NATIVE_REASON
from tests.fuzz.driver import fuzz, read_corpus
from tests.fuzz.targets import TARGETS, FuzzTarget

SECONDS = 3.0
INPUTS = 20_000


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_no_input_crashes_hangs_or_grows(target: FuzzTarget) -> None:
    if target.name == "native" and NATIVE is None:
        pytest.skip(NATIVE_REASON)
    campaign = fuzz(target, inputs=INPUTS, seconds=SECONDS, seed=1)

    assert len(read_corpus(target.name)) < campaign.inputs
