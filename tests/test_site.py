"""The docs as a site: it builds without a warning, in four parts, and asks nothing of other machines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parent.parent
LOADS = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=[\"']?((?:https?:)?//[^\"'\s>]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=REPOSITORY,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


def test_every_page_of_the_docs_is_a_page_of_the_site(site: Path) -> None:
    written = {path.stem for path in (REPOSITORY / "docs").glob("*.md")}
    assert written <= {path.stem for path in site.glob("*.html")}


def test_the_site_has_four_parts_and_a_short_first_page() -> None:
    settings = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))
    names = [name for entry in settings["nav"] for name in entry]
    assert names == ["Home", "Tutorial", "How-to", "Reference", "Explanation"]
    assert len((REPOSITORY / "docs" / "index.md").read_text(encoding="utf-8").splitlines()) <= 40


def test_pages_load_nothing_from_other_machines(site: Path) -> None:
    loaded = {page.name: LOADS.findall(page.read_text(encoding="utf-8")) for page in site.rglob("*.html")}
    assert loaded
    assert {name: found for name, found in loaded.items() if found} == {}
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", styles)
