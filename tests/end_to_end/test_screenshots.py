"""The pictures in README and docs show the page as it is."""

import asyncio
from pathlib import Path

import pytest

from tests.support.check_tools import PROJECT
from tests.support.screenshots import shown_in, taken
from tests.support.service_process import ServiceProcess

pytestmark = pytest.mark.end_to_end

LARGEST_BYTES = 200_000


@pytest.mark.requires_program("chromium")
async def test_every_picture_is_current_and_small(tmp_path: Path) -> None:
    pictures = await taken(tmp_path)

    assert {picture.name for picture in pictures} == {path.name for path in (PROJECT / "docs").glob("*.png")}
    pages = (PROJECT / "README.md").read_text() + (PROJECT / "docs" / "page.md").read_text()
    for picture in pictures:
        committed = (PROJECT / "docs" / picture.name).read_bytes()
        (width, height), text = shown_in(committed)
        assert text == picture.text, "make screenshots"
        size = shown_in(picture.png)[0]
        assert width == size[0]
        assert abs(height - size[1]) < height / 5  # lines break elsewhere with other fonts
        assert len(committed) < LARGEST_BYTES
        assert picture.name in pages


async def test_the_runs_of_the_demonstration_are_on_the_page_if_asked(tmp_path: Path) -> None:
    service = ServiceProcess(tmp_path, {"page": {"endpoint": "127.0.0.1:0"}}, arguments=["--demo"])
    async with service:
        async with asyncio.timeout(60):
            while len(service.results()) < 8:
                await asyncio.sleep(0.1)
        assert any(f"the page is at http://{service.endpoints['page']}" in line for line in service.log)
        assert 0 == await service.stop()
