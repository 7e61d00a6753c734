import gzip
import os
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.errors import MalformedRequest, RequestTooLarge
from collector.otlp import gzip_compress, gzip_decompress, zlib_decompress

_MIB = 1 << 20


@given(st.binary(max_size=2000))
def test_what_is_deflated_inflates_to_the_same(data: bytes) -> None:
    assert data == gzip_decompress(gzip_compress(data), len(data))
    assert data == gzip.decompress(gzip_compress(data))
    assert data == gzip_decompress(gzip.compress(data), len(data))
    assert data == zlib_decompress(zlib.compress(data), len(data))


def test_several_members_are_one_content() -> None:
    data = gzip.compress(b"one ") + gzip.compress(b"") + gzip.compress(b"two")

    assert gzip_decompress(data, 7) == b"one two"


def test_large_incompressible_members_cross_the_pieces_they_are_fed_in() -> None:
    first, second = os.urandom(3 * _MIB), os.urandom(2 * _MIB + 1)

    content = gzip_decompress(gzip_compress(first) + gzip_compress(second), 6 * _MIB)

    assert content == first + second


def test_zero_bytes_behind_the_end_are_padding() -> None:
    assert gzip_decompress(gzip.compress(b"data") + bytes(600), 4) == b"data"


@pytest.mark.parametrize("limit", [0, 1, 999])
def test_more_than_the_limit_is_too_large(limit: int) -> None:
    with pytest.raises(RequestTooLarge) as refusal:
        gzip_decompress(gzip.compress(b"x" * 1000), limit)

    assert f"The request has more than the allowed {limit} bytes after decompression." == str(refusal.value)


def test_the_limit_is_for_all_members_together() -> None:
    member = gzip.compress(b"x" * 600)

    assert len(gzip_decompress(member * 2, 1200)) == 1200
    with pytest.raises(RequestTooLarge):
        gzip_decompress(member * 2, 1199)


def test_a_bomb_is_not_inflated_beyond_the_limit() -> None:
    bomb = gzip.compress(bytes(256 * _MIB))
    tracemalloc.start()
    try:
        with pytest.raises(RequestTooLarge):
            gzip_decompress(bomb, 4 * _MIB)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 16 * _MIB


def test_a_swarm_of_empty_members_is_refused() -> None:
    with pytest.raises(MalformedRequest, match=r"The gzip data has more than 1000 members\."):
        gzip_decompress(gzip.compress(b"") * 100_000, 10)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x1f",
        b"\x1f\x8b",
        gzip.compress(b"data")[:-1],
        gzip.compress(b"data" * 100)[:-9],
        gzip.compress(b"data") + gzip.compress(b"data")[:-4],
    ],
    ids=["empty", "one byte", "magic only", "trailer cut", "content cut", "second member cut"],
)
def test_gzip_that_ends_early_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedRequest, match=r"The gzip data ends early\."):
        gzip_decompress(data, 1000)


@pytest.mark.parametrize(
    "data",
    [
        b"not gzip at all",
        gzip.compress(b"data") + b"more than a header",
        gzip.compress(b"data") + b"\0" + gzip.compress(b"data"),
        gzip.compress(b"data")[:-8] + b"abcd" + gzip.compress(b"data")[-4:],
    ],
    ids=["no gzip", "junk behind", "zero between members", "wrong checksum"],
)
def test_damaged_gzip_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedRequest, match="The gzip data is damaged"):
        gzip_decompress(data, 1000)


@given(st.binary(max_size=200), st.booleans())
def test_arbitrary_bytes_are_inflated_or_refused(data: bytes, has_magic: bool) -> None:
    data = b"\x1f\x8b\x08" + data if has_magic else data

    try:
        content = gzip_decompress(data, 10_000)
    except (MalformedRequest, RequestTooLarge):
        return
    assert content == gzip.decompress(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (zlib.compress(b"data")[:-1], "The deflate data ends early."),
        (zlib.compress(b"data") + b"x", "The deflate data has trailing bytes."),
    ],
    ids=["cut", "junk behind"],
)
def test_a_broken_zlib_stream_is_malformed(data: bytes, message: str) -> None:
    with pytest.raises(MalformedRequest) as refusal:
        zlib_decompress(data, 1000)

    assert message == str(refusal.value)


def test_a_zlib_stream_has_the_same_limit() -> None:
    with pytest.raises(RequestTooLarge):
        zlib_decompress(zlib.compress(b"x" * 1000), 999)
