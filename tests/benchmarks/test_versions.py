"""Two checkouts can be compared, wherever they keep their modules."""

from pathlib import Path

import pytest

from benchmarks.child_process import REPOSITORY, MeasurementRefused
from benchmarks.version_worker import Checkout
from benchmarks.versions import versions_lines


def test_a_checkout_grades_as_itself_does() -> None:
    heading, *lines = versions_lines(REPOSITORY, rounds=1)

    assert "equal graded spans" in heading
    assert ["reconstruct", "reconstruct", "stage", "stage"] == [line.split()[1].strip(",") for line in lines]


def test_a_name_is_found_in_the_room_where_it_is_defined(tmp_path: Path) -> None:
    room = tmp_path / "processors" / "reconstruction"
    room.mkdir(parents=True)
    (tmp_path / "collector").mkdir()
    (room / "__init__.py").write_text("from .passes import reconstruct\n")
    (room / "passes.py").write_text("def reconstruct(spans): ...\ndef reconstruct_all(spans): ...\n")
    code = Checkout(tmp_path)

    assert "processors.reconstruction.passes" == code.module_of("reconstruct")
    with pytest.raises(LookupError, match="split_request is defined 0 times"):
        code.module_of("split_request")


def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MeasurementRefused, match="no checkout"):
        list(versions_lines(tmp_path, rounds=1))
