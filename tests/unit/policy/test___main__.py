import json
import subprocess
import sys
from pathlib import Path

import pytest

from fakes.repository import REPOSITORY
from policy.__main__ import main

pytestmark = pytest.mark.slow


def policy(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "policy", *map(str, arguments)]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def refused(monkeypatch, capsys):
    """What is printed about arguments that are refused, in this process: another one takes longer than all it does."""

    def run(*arguments: str | Path) -> str:
        monkeypatch.setattr(sys, "argv", ["policy", *map(str, arguments)])
        try:
            code = main()
        except SystemExit as refused:
            code = refused.code
        assert code == 2
        return capsys.readouterr().err

    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("series")
    for name, pattern in (("a", [1] * 40 + [0] * 15), ("b", [1, 1, 0, 3])):
        data = (pattern * 600)[: 620 if name == "a" else 700]
        content = {"metadata": {"gap_seconds": 600}, "data": data}
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_the_document_has_every_cell_with_every_policy_and_decision(folder):
    done = policy("replay", "--traces", folder, "--pools", "together", "--starts", "1", "--json", "--decisions")

    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["series"] == ["a", "b"]
    settings = {
        (round(cell["job"]["work"] / cell["job"]["time"], 1), cell["job"]["overhead"], cell["job"]["price_ratio"])
        for cell in document["cells"]
    }
    assert settings == {
        *((share, 0.2, 3.145) for share in (0.6, 0.7, 0.8, 0.9)),
        *((0.8, *setting) for setting in ((0.05, 3.145), (0.5, 3.145), (0.2, 1.4))),
    }
    assert {cell["knowledge"] for cell in document["cells"]} == {"tries only", "every tick seen"}
    for cell in document["cells"]:
        figures = {each["policy"]: each for each in cell["policies"]}
        assert set(figures) == {"retry-3", "on-demand", "greedy", "uniform-progress", "cheapest"}
        assert all(each["over"] >= -1e-6 for each in figures.values())
        assert figures["cheapest"]["met"] == 1.0
        (sample,) = cell["samples"]
        assert sample["decisions"]["cheapest"][0]["tick"] == 0


def test_what_going_back_to_spot_saves_is_printed_for_every_setting(folder):
    done = policy("returns", "--traces", folder, "--starts", "1")

    assert (done.returncode, done.stderr) == (0, "")
    header, *rows = done.stdout.splitlines()
    assert header.split("  ")[-1].strip() == "back, length unknown"
    assert len(rows) == 12
    assert all(row.count("%") == 3 for row in rows)


def test_going_back_needs_a_series_as_long_as_a_job(tmp_path, refused):
    content = {"metadata": {"gap_seconds": 600}, "data": [0, 1] * 20}
    (tmp_path / "short.json").write_text(json.dumps(content), encoding="utf-8")

    said = refused("returns", "--traces", tmp_path, "--starts", "1")

    assert said == "policy: no series is as long as the 24.0 h that a job has\n"


def test_gangs_are_replayed_on_counts(folder):
    done = policy("replay", "--traces", folder, "--nodes", "3", "--starts", "1", "--overlap", "0")

    assert (done.returncode, done.stderr) == (0, "")
    assert "3 at once, tries only, 2 runs" in done.stdout
    assert "median" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--nodes", "32"], "gangs of 32 cannot be drawn"),
        (["--traces", "missing"], "missing has no series"),
        (["--starts", "0"], "'0' is not a whole number, 1 or more"),
        (["--overlap", "2"], "'2' is not a share from 0 to 1"),
    ],
)
def test_what_cannot_be_replayed_is_said(refused, arguments, problem):
    assert problem in refused("replay", *arguments)


def test_series_that_are_too_short_say_how_long_a_job_is(tmp_path):
    (tmp_path / "a.json").write_text('{"metadata": {"gap_seconds": 600}, "data": [0, 1]}', encoding="utf-8")

    done = policy("replay", "--traces", tmp_path)

    assert done.returncode == 2
    assert "no series is as long as the 80.0 h that a job has" in done.stderr
