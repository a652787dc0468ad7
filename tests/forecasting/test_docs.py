from __future__ import annotations

from pathlib import Path

from gputwin.forecasting.combine import AUTO, ENSEMBLES
from gputwin.forecasting.models._model import MODELS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "forecasting.md"


def test_the_page_names_every_model():
    text = PAGE.read_text(encoding="utf-8")
    for name in (*MODELS.names(), *ENSEMBLES, AUTO):
        assert f"`{name}`" in text, name
