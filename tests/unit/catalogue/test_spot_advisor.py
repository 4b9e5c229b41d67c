"""The bundled interruption bands, from the file of AWS's page."""

import json
from pathlib import Path
from typing import Any

import pytest

from catalogue import spot_advisor
from relaunch.adapters.offerings.bundled import load_catalogue, load_interruption_bands

RANGES = [{"index": index, "label": label} for index, label in enumerate(spot_advisor.LABELS)]
ADVISOR: dict[str, Any] = {
    "ranges": RANGES[::-1],
    "spot_advisor": {
        "us-east-1": {"Linux": {"g5.xlarge": {"s": 59, "r": 4}, "c5.large": {"s": 1, "r": 0}}, "Windows": {}},
        "xx-none-1": {"Windows": {}},
    },
}


def test_the_bands_of_known_types_are_written_by_region(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "advisor.json"
    source.write_text(json.dumps(ADVISOR))

    assert spot_advisor.main(["--input", str(source), "--date", "2026-01-02", "--output", str(tmp_path)]) == 0

    made = json.loads((tmp_path / spot_advisor.BANDS_FILE).read_text())
    assert made == {"source": spot_advisor.SOURCE, "date": "2026-01-02", "regions": {"us-east-1": {"g5.xlarge": 4}}}
    assert "written" in capsys.readouterr().out


@pytest.mark.parametrize("changes", [{"ranges": RANGES[:3]}, {"spot_advisor": {}}, {"ranges": None}])
def test_a_file_of_another_form_replaces_nothing(tmp_path: Path, changes: dict[str, Any]) -> None:
    source = tmp_path / "advisor.json"
    source.write_text(json.dumps(ADVISOR | changes))

    assert spot_advisor.main(["--input", str(source), "--output", str(tmp_path)]) == 2
    assert not (tmp_path / spot_advisor.BANDS_FILE).exists()


def test_what_is_bundled_is_of_the_catalogue() -> None:
    bands = load_interruption_bands("us-east-1")

    assert bands.keys() <= load_catalogue().keys()
    assert set(bands.values()) <= set(range(len(spot_advisor.LABELS)))
    assert load_interruption_bands("xx-none-1") == {}
