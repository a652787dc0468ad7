"""A report in a real browser: what it measures there, without a driver.

Chromium prints the page's elements once it is drawn. To measure, a script is added to a copy of the page and allowed by
the copy's policy; the copy stands in a frame of the size wanted (windows have a least width) and tells the page around it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--enable-logging=stderr", "--v=0"),
)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")

PROBE = (Path(__file__).parent / "probe.js").read_text(encoding="utf-8")
AXE = Path(__file__).parents[1] / "browser" / "node_modules" / "axe-core" / "axe.min.js"
needs_axe = pytest.mark.skipif(
    CHROMIUM is None or not AXE.is_file(), reason="no chromium, or no axe-core (`make system` installs both)"
)


AROUND = """<!DOCTYPE html><html lang="en"><body style="margin:0">
<script>addEventListener("message", (m) => {{ document.documentElement.dataset.found = m.data; }});</script>
<iframe style="border:0;width:{width}px;height:{height}px" src="{page}"></iframe></body></html>
"""


def dom(path: Path, folder: Path, *flags: str, fragment: str = "") -> tuple[str, str]:
    """Return the page's elements once drawn, and what the browser logged."""
    command = [str(CHROMIUM), *QUIET, f"--user-data-dir={folder / 'profile'}", *flags]
    command += ["--virtual-time-budget=6000", "--dump-dom", f"{path.as_uri()}{fragment}"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    return result.stdout, result.stderr


def measured(
    path: Path, folder: Path, width: int, height: int, *, dark: bool = False, fragment: str = "", axe: bool = False
) -> dict[str, Any]:
    """Return what the probe, with axe-core where asked, finds in a window of this size; the console must be silent."""
    scripts = [*([AXE.read_text(encoding="utf-8").replace("</script", "<\\/script")] if axe else []), PROBE]
    probed = path.read_text(encoding="utf-8")
    for script in reversed(scripts):
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        probed = probed.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
        head, body, tail = probed.rpartition('<script type="text/plain" id="plotly">')
        probed = f"{head}<script>{script}</script>\n{body}{tail}"
    (folder / "probed.html").write_text(probed, encoding="utf-8")
    around = folder / "around.html"
    around.write_text(AROUND.format(width=width, height=height, page=f"probed.html{fragment}"), encoding="utf-8")
    flags = ["--window-size=1500,1100", f"--blink-settings=preferredColorScheme={int(not dark)}"]
    text, log = dom(around, folder, *flags)
    assert "CONSOLE" not in log, log[-2000:]
    (found,) = re.findall(r'data-found="([^"]*)"', text)
    data: dict[str, Any] = json.loads(unescape(found))
    return data
