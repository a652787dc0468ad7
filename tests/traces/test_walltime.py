"""Wall-clock times of a zone as Unix seconds."""

from __future__ import annotations

import polars as pl
import pytest

from gputwin.core.errors import InputError
from gputwin.traces.quality import QualityLog
from gputwin.traces.walltime import to_unix_seconds

ZONE = "America/New_York"


def seconds(quality: QualityLog, *texts: str | None) -> list[float | None]:
    frame = pl.DataFrame({"_row": range(1, len(texts) + 1), "t": texts}, schema={"_row": pl.UInt32, "t": pl.String})
    return to_unix_seconds(frame, "t", ZONE, "file", quality)["t"].to_list()


def test_summer_and_winter_have_their_offsets():
    quality = QualityLog()
    assert seconds(quality, "2017-07-01 00:00:00", "2017-12-01 00:00:00", None) == [1_498_881_600, 1_512_104_400, None]
    assert quality.findings == []


def test_an_hour_that_comes_twice_is_its_first_pass():
    quality = QualityLog()
    before, twice, after = seconds(quality, "2017-11-05 00:59:00", "2017-11-05 01:00:00", "2017-11-05 02:00:00")
    assert (twice - before, after - twice) == (60, 2 * 3600)
    assert [(f.rule, f.count) for f in quality.findings] == [("F09", 1)]


def test_an_hour_that_never_came_is_read_on_the_later_clock():
    quality = QualityLog()
    before, skipped, after = seconds(quality, "2017-03-12 01:30:00", "2017-03-12 02:30:00", "2017-03-12 03:30:00")
    assert (skipped - before, after - skipped) == (0, 3600)
    assert [(f.rule, f.count) for f in quality.findings] == [("F09", 1)]


def test_what_is_no_time_is_named_or_unknown():
    with pytest.raises(InputError, match=r"file, row 2, field 't': 'soon' is not a time"):
        seconds(QualityLog(), "2017-07-01 00:00:00", "soon")
    quality = QualityLog(lenient=True)
    assert seconds(quality, "soon") == [None]
    assert [(f.rule, f.count) for f in quality.findings] == [("F03", 1)]
