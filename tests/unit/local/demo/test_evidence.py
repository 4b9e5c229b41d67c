import json
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from relaunch_local.demo.evidence import read_item, write_evidence


def test_items_are_read_as_what_they_hold() -> None:
    item: dict[str, dict[str, Any]] = {
        "pk": {"S": "JOB#a"},
        "version": {"N": "6"},
        "share": {"N": "0.5"},
        "body": {"S": '{"state": "RUNNING"}'},
        "packed": {"B": zlib.compress(b'[{"rank": 1}]')},
    }

    assert read_item(item) == {
        "pk": "JOB#a",
        "version": 6,
        "share": 0.5,
        "body": {"state": "RUNNING"},
        "packed": [{"rank": 1}],
    }


def test_evidence_is_written_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "demo.json"
    write_evidence({"at": datetime(2026, 1, 1, tzinfo=UTC), "text": "…"}, file)

    assert json.loads(file.read_text()) == {"at": "2026-01-01T00:00:00+00:00", "text": "…"}
    assert list(tmp_path.iterdir()) == [file]


def test_evidence_that_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "demo.json"
    file.write_text("{}")
    with pytest.raises(TypeError):
        write_evidence({"at": object()}, file)

    assert file.read_text() == "{}"
    assert list(tmp_path.iterdir()) == [file]
