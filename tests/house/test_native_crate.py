"""The crate in `native/` stays what its decision allows: small, safe, without rules, apart from the world."""

import re
import tomllib

from processors.carriers import discover_dialects
from processors.spans import native
from tests.house.product_code import ROOT

MAX_LINES = 1_200
CRATE = ROOT / "native"
SOURCES = {path.name: path.read_text("utf-8") for path in sorted((CRATE / "src").glob("*.rs"))}


def test_it_stays_small() -> None:
    assert sum(len(text.splitlines()) for text in SOURCES.values()) <= MAX_LINES


def test_it_is_safe() -> None:
    manifest = tomllib.loads((CRATE / "Cargo.toml").read_text("utf-8"))

    assert "forbid" == manifest["lints"]["rust"]["unsafe_code"]
    assert manifest["profile"]["release"]["overflow-checks"]


def test_it_touches_nothing_outside() -> None:
    packages = {
        package["name"] for package in tomllib.loads((CRATE / "crates.lock").read_text("utf-8"))["package"]
    }
    world = r"std::(net|fs|env|process|thread|time|io)\b|\b(println|eprintln)!"

    assert {"pyo3", "memchr"} <= packages
    assert not packages & {
        "tokio",
        "mio",
        "socket2",
        "hyper",
        "h2",
        "tonic",
        "rayon",
        "crossbeam-channel",
        "rand",
    }
    assert {} == {name: found[0] for name, text in SOURCES.items() if (found := re.search(world, text))}


def test_it_knows_no_framework_and_no_attribute() -> None:
    names = [dialect.name for dialect in discover_dialects()]
    rules = rf"\b({'|'.join(map(re.escape, names))})\b" + r'|"(?!processors\.)[a-z_]+\.[a-z_.]+"'

    assert len(names) > 20
    assert {} == {name: found[0] for name, text in SOURCES.items() if (found := re.search(rules, text))}


def test_what_it_offers_is_the_interface() -> None:
    offered = set(re.findall(r"wrap_pyfunction!\(\w+::(\w+)", SOURCES["lib.rs"]))
    offered |= set(re.findall(r"add_class::<\w+::(\w+)>", SOURCES["lib.rs"]))
    offered |= set(re.findall(r'module\.add\("(\w+)"', SOURCES["lib.rs"]))
    stated = {
        name for name in (*vars(native.Native), *native.Native.__annotations__) if not name.startswith("_")
    }

    assert stated == offered - {"INTERFACE"}
    assert f"const INTERFACE: u32 = {native.INTERFACE};" in SOURCES["lib.rs"]
