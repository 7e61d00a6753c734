"""A changed text is seen in review: the texts in the code are those of `texts.txt`."""

from tests.house.texts import SNAPSHOT, all_texts


def test_the_texts_are_those_of_the_snapshot() -> None:
    assert SNAPSHOT.read_text("utf-8") == all_texts(), (
        "run `python -m tests.house.texts` and look at the difference"
    )
