"""The reader in Rust is in use where it is installed and fits; else the reason is known."""

import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from processors.spans import NATIVE, native
from tests.support.readers import reader

PROJECT = Path(__file__).parents[3]


def test_it_can_be_switched_off() -> None:
    assert (None, "TRACEGRADE_NATIVE is off") == native._load("off")


def test_one_with_another_interface_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tracegrade_native", SimpleNamespace(INTERFACE=0))

    assert (None, f"tracegrade-native has interface 0, expected {native.INTERFACE}") == native._load("")


def test_without_the_package_the_reason_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tracegrade_native", None)

    assert (None, "tracegrade-native is not installed") == native._load("")


def test_it_is_of_the_same_version_and_required_in_that_version() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    crate = tomllib.loads((PROJECT / "native" / "Cargo.toml").read_text())["package"]

    assert project["version"] == crate["version"]
    assert [f"tracegrade-native=={crate['version']}"] == project["optional-dependencies"]["native"]


def test_it_finds_any_of_some_bytes() -> None:
    with reader("native"):
        assert NATIVE is not None
        assert NATIVE.contains_any(b"one two three", b"four", b"two")
        assert not NATIVE.contains_any(b"one two three", b"four")
        assert not NATIVE.contains_any(b"", b"four")
