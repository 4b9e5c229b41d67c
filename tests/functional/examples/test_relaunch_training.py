"""What a training copies to keep the contract: what is written, in which order, what counts, and what is printed."""

import ast
import json
import math
import re
import time
from fractions import Fraction
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any

import pytest

import relaunch_training
from functional.examples.attempts import EXAMPLES
from functional.examples.saving import OBJECTS, Attempt, steps_in
from relaunch_training import Checkpoint, Checkpoints, FileStore


def manifest_of(uri: str | None) -> dict[str, Any]:
    assert uri is not None
    return json.loads(Path(uri.removeprefix("file://"), "manifest.json").read_text())  # type: ignore[no-any-return]


def test_a_manifest_is_stored_in_the_documented_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", iter((10.0, 12.5)).__next__)
    monkeypatch.setattr(time, "time", lambda: 1_767_323_045.5)
    monkeypatch.setattr(time, "gmtime", lambda: (2026, 1, 2, 3, 4, 5, 4, 2, 0))
    monkeypatch.setattr(FileStore, "put", lambda *arguments: stored.append(arguments))
    stored: list[Any] = []

    Checkpoints(f"file://{tmp_path}/job-1/attempt-3/", attempt=3, job_id="job-1").save(
        120, OBJECTS, loss=0.5, total_steps=200, accuracy=0.75
    )

    assert json.loads(stored[-1][2]) == {
        "format": 1,
        "job_id": "job-1",
        "attempt": 3,
        "step": 120,
        "objects": [
            {
                "key": "model/part-0.bin",
                "size": 2,
                "sha256": "b413f47d13ee2fe6c845b2ee141af81de858df4ec549a58b7970bb96645bc8d2",
            },
            {
                "key": "state.json",
                "size": 2,
                "sha256": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
            },
        ],
        "loss": 0.5,
        "metrics": {"accuracy": 0.75},
        "total_steps": 200,
        "series": [[120, 1_767_323_045, 0.5]],
        "save_seconds": 2.5,
        "saved_at": "2026-01-02T03:04:05+00:00",
    }
    assert [key for _, key, *_ in stored] == [*OBJECTS, "manifest.json"]


@pytest.mark.parametrize("kind", ["bytes", "paths", "folder", "function"])
def test_a_checkpoint_is_fetched_as_it_was_saved(attempt: Attempt, tmp_path: Path, kind: str) -> None:
    for key, body in OBJECTS.items():
        path = tmp_path / "written" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    files: Any = {
        "bytes": OBJECTS,
        "paths": {key: str(tmp_path / "written" / key) for key in OBJECTS},
        "folder": tmp_path / "written",
        "function": lambda: OBJECTS,
    }

    uri = attempt().save(120, files[kind])
    fetched = attempt(2).resume(tmp_path / "resumed")

    assert uri == f"file://{tmp_path}/job-1/attempt-1/step-0000120/"
    folder = tmp_path / "resumed" / "attempt-1-step-0000120"
    assert fetched == Checkpoint(uri, 120, folder, manifest_of(uri))
    assert {key: (folder / key).read_bytes() for key in OBJECTS} == OBJECTS


def test_a_single_file_is_saved_by_its_name(attempt: Attempt, tmp_path: Path) -> None:
    (tmp_path / "state.pt").write_bytes(b"state")

    assert [each["key"] for each in manifest_of(attempt().save(1, tmp_path / "state.pt"))["objects"]] == ["state.pt"]


def test_the_newest_complete_checkpoint_is_that_of_the_highest_step_then_attempt(
    attempt: Attempt, tmp_path: Path
) -> None:
    for step, number in ((40, 1), (100, 1), (60, 2), (100, 10), (100, 9)):
        attempt(number).save(step, OBJECTS)

    assert steps_in(tmp_path) == [(100, 10), (100, 9), (100, 1), (60, 2), (40, 1)]
    fetched = attempt(11).resume(tmp_path / "resumed")
    assert fetched is not None
    assert fetched.uri == f"file://{tmp_path}/job-1/attempt-10/step-0000100/"


def test_what_relaunch_chose_comes_before_what_is_newer(attempt: Attempt, tmp_path: Path) -> None:
    chosen = attempt().save(40, OBJECTS)
    attempt().save(100, OBJECTS)

    fetched = attempt(2, resume_uri=chosen).resume(tmp_path / "resumed")

    assert fetched is not None
    assert fetched.step == 40


def test_a_job_that_retries_another_one_falls_back_to_that_ones_older_checkpoint(tmp_path: Path) -> None:
    other = Checkpoints(f"file://{tmp_path}/job-0/attempt-3/")
    other.save(40, OBJECTS)
    chosen = other.save(50, OBJECTS)
    (tmp_path / "job-0/attempt-3/step-0000050/state.json").write_bytes(b"[]")
    rejected: list[tuple[str, str]] = []

    fetched = Checkpoints(f"file://{tmp_path}/job-1/attempt-1/", chosen).resume(
        tmp_path / "resumed", lambda uri, reason: rejected.append((uri, reason))
    )

    assert fetched is not None
    assert fetched.step == 40
    assert [uri for uri, _ in rejected] == [chosen]


def test_a_checkpoint_with_a_missing_or_short_object_or_without_manifest_is_not_complete(
    attempt: Attempt, tmp_path: Path
) -> None:
    for step in (10, 20, 30, 40, 50):
        attempt().save(step, OBJECTS)
    folder = tmp_path / "job-1/attempt-1"
    (folder / "step-0000020/state.json").unlink()
    (folder / "step-0000030/model/part-0.bin").write_bytes(b"\x00")
    (folder / "step-0000040/manifest.json").unlink()
    (folder / "step-0000050/manifest.json").write_text("{")

    assert steps_in(tmp_path) == [(10, 1)]


def test_a_newest_checkpoint_of_damaged_contents_gives_way_to_the_one_before_and_is_printed(
    attempt: Attempt, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for step in (10, 20):
        attempt().save(step, OBJECTS)
    (tmp_path / "job-1/attempt-1/step-0000020/state.json").write_bytes(b"[]")

    fetched = attempt(2).resume(tmp_path / "resumed")

    assert fetched is not None
    assert fetched.step == 10
    assert "step-0000020/ cannot be used: {'key': 'state.json', 'size': 2," in capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"objects": None},
        {"objects": []},
        {"objects": [{"key": "state.json"}]},
        {"objects": [{"key": "state.json", "size": "2"}]},
        {"objects": [{"key": "../state.json", "size": 2}]},
        {"objects": [{"key": "/etc/passwd", "size": 2}]},
    ],
    ids=str,
)
def test_a_manifest_of_another_form_is_unusable(attempt: Attempt, tmp_path: Path, change: dict[str, object]) -> None:
    uri = attempt().save(1, OBJECTS)
    path = tmp_path / "job-1/attempt-1/step-0000001/manifest.json"
    path.write_text(json.dumps(manifest_of(uri) | change))
    # What a key outside of its folder would reach.
    (tmp_path / "job-1/attempt-1/state.json").write_bytes(b"{}")
    rejected: list[str] = []

    assert attempt(2, resume_uri=uri).resume(tmp_path / "resumed", lambda _uri, reason: rejected.append(reason)) is None
    assert len(rejected) == 1


def test_a_manifest_needs_no_sha256_and_may_have_more(attempt: Attempt, tmp_path: Path) -> None:
    manifest = {"format": 1, "framework": "own", "objects": [{"key": "state", "size": 3, "shard": 0}]}
    folder = tmp_path / "job-1/attempt-1/step-0000001"
    folder.mkdir(parents=True)
    (folder / "state").write_bytes(b"abc")
    (folder / "manifest.json").write_text(json.dumps(manifest))

    fetched = attempt(2).resume(tmp_path / "resumed")

    assert fetched is not None
    assert (fetched.folder / "state").read_bytes() == b"abc"


def test_a_job_that_saved_nothing_has_nothing_to_resume_from(attempt: Attempt, tmp_path: Path) -> None:
    assert attempt().resume(tmp_path / "resumed") is None
    assert Checkpoints().resume(tmp_path / "resumed") is None


def test_a_line_says_how_far_the_training_is_and_what_was_saved(
    attempt: Attempt, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoints = attempt(report_seconds=0)

    checkpoints.report(3, 200, loss=0.00656426511, lr=1e-5, tokens=12345678, **{"eval/f1": 0.5})
    checkpoints.report(4)
    checkpoints.save(5, OBJECTS, loss=1, total_steps=200)

    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "relaunch: step=3 of=200 loss=0.00656427 lr=1e-05 tokens=12345678 eval/f1=0.5",
        "relaunch: step=4",
    ]
    assert re.fullmatch(r"relaunch: step=5 of=200 loss=1 save_seconds=[0-9.e-]+", lines[2])


def test_lines_are_printed_every_so_often_and_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    checkpoints = Checkpoints(report_seconds=10)
    for step in range(1, 26):
        now[0] += 1
        checkpoints.report(step, 25)

    assert re.findall("step=([0-9]+)", capsys.readouterr().out) == ["1", "11", "21", "25"]


def test_the_series_goes_on_from_the_checkpoint_and_stays_evenly_spread(
    attempt: Attempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: now[0])
    now = [1_767_000_000.0]
    first = attempt(report_seconds=0)
    for step in range(1, 2_500):
        now[0] += 10
        first.report(step, loss=1 / step)
    uri = first.save(2_500, OBJECTS)
    first.report(2_600)  # lost with its attempt
    now[0] += 600

    second = attempt(2, resume_uri=uri, report_seconds=0)
    second.resume(tmp_path / "resumed")
    second.report(2_510, loss=math.nan)
    series = manifest_of(second.save(2_520, OBJECTS, loss=0.125))["series"]

    assert len(series) == 1_000
    assert [series[0], *series[-3:]] == [
        [1, 1_767_000_010, 1],
        [2_500, 1_767_024_990, None],
        [2_510, 1_767_025_590, None],
        [2_520, 1_767_025_590, 0.125],
    ]
    gaps = {later[1] - sooner[1] for sooner, later in pairwise(series[:-10])}
    assert max(gaps) <= 2 * min(gaps)


@pytest.mark.parametrize("said", ["null", "7", "[1]", '[["a", 2, 3]]', "[[1e400, 2, 3]]", '[[1, 2, "low"]]'])
def test_a_series_of_another_form_is_not_gone_on_from(attempt: Attempt, tmp_path: Path, said: str) -> None:
    uri = attempt().save(1, OBJECTS)
    assert uri is not None
    path = Path(uri.removeprefix("file://"), "manifest.json")
    path.write_text(json.dumps({**manifest_of(uri), "series": "S"}).replace('"S"', said))
    second = attempt(2, resume_uri=uri)
    second.resume(tmp_path / "resumed")

    assert [point[0] for point in manifest_of(second.save(2, OBJECTS))["series"]] == [2]


def test_what_is_not_finite_is_in_no_line_and_no_manifest(attempt: Attempt, capsys: pytest.CaptureFixture[str]) -> None:
    uri = attempt().save(1, OBJECTS, loss=math.nan, norm=math.inf, lr=0.5, skipped=None)

    assert "loss" not in manifest_of(uri)
    assert manifest_of(uri)["metrics"] == {"lr": 0.5}
    assert re.fullmatch("relaunch: step=1 lr=0.5 save_seconds=.*\n", capsys.readouterr().out)


def test_a_metric_of_another_name_or_no_number_ends_no_training(
    attempt: Attempt, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics: dict[str, Any] = {"mAP@0.5": 0.4, "5%": 1, "of": 2, "job_id": 3, "norms": [1.0], "seen": 10**400}
    checkpoints = attempt()

    uris = [checkpoints.save(step, OBJECTS, **metrics) for step in (1, 2)]

    assert [manifest_of(uri)["metrics"] for uri in uris] == [{"mAP_0.5": 0.4, "_5_": 1, "_of": 2, "job_id": 3}] * 2
    assert manifest_of(uris[0])["job_id"] == "by-hand"
    assert capsys.readouterr().err.splitlines() == [
        "relaunch: the metric 'mAP@0.5' is written as mAP_0.5: letters, digits, _ . / -; not step, of",
        "relaunch: the metric '5%' is written as _5_: letters, digits, _ . / -; not step, of",
        "relaunch: the metric 'of' is written as _of: letters, digits, _ . / -; not step, of",
        "relaunch: the metric 'norms' is left out: its list is no number, or too large",
        "relaunch: the metric 'seen' is left out: its int is no number, or too large",
    ]


def test_numbers_of_other_libraries_are_numbers(attempt: Attempt, capsys: pytest.CaptureFixture[str]) -> None:
    class Int64(Fraction):
        """As numpy's: a number for Python, and none for json."""

    Integral.register(Int64)
    checkpoints = attempt(report_seconds=0)
    numbers: Any = {"loss": Fraction(1, 2), "total_steps": Int64(1234567), "tokens": Int64(12345678)}

    checkpoints.report(Int64(4), **numbers)  # type: ignore[arg-type]
    manifest = manifest_of(checkpoints.save(Int64(5), OBJECTS, **numbers))  # type: ignore[arg-type]

    said = "of=1234567 loss=0.5 tokens=12345678"
    assert re.fullmatch(f"relaunch: step=4 {said}\nrelaunch: step=5 {said} save_.*\n", capsys.readouterr().out)
    assert [manifest[name] for name in ("step", "loss", "total_steps", "metrics")] == [
        5, 0.5, 1234567, {"tokens": 12345678},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("step", "files", "message"),
    [
        (-1, OBJECTS, "step-"),
        (10**19, OBJECTS, "step-"),
        (1, {}, "1 to 20,000 files, not 0"),
        (1, {str(n): b"" for n in range(20_001)}, "not 20,001: pack them"),
        (1, {"manifest.json": b""}, "'manifest.json' is no key"),
        (1, {"a/../../b": b""}, "is no key"),
        (1, {"a//b": b""}, "is no key"),
        (1, {"k" * 900 + str(n): b"" for n in range(5000)}, "more than 4,194,304 bytes"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_no_checkpoint_can_be_is_refused_and_leaves_none(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch, step: int, files: Any, message: str
) -> None:
    monkeypatch.setattr(FileStore, "put", lambda _self, key, *_: written.append(key))
    written: list[str] = []

    with pytest.raises(ValueError, match=re.escape(message)):
        attempt().save(step, files)

    assert "manifest.json" not in written


@pytest.mark.parametrize(
    ("uri", "resume_uri"),
    [
        ("s3:/bucket/job/attempt-1/", None),
        ("file:///job/", None),
        ("file:///job/attempt-1/step-1/", None),
        (None, "file:///job/attempt-1/"),
        (None, "file:///job/attempt-1234567/step-1/"),
    ],
)
def test_a_uri_of_another_form_is_refused_before_the_first_step(uri: str | None, resume_uri: str | None) -> None:
    with pytest.raises(ValueError, match=r"is neither s3|is not of the form"):
        Checkpoints(uri, resume_uri)


def test_the_environment_says_everything() -> None:
    given = {"JOB_ID": "job-7", "ATTEMPT": "3", "CHECKPOINT_URI": "file:///c/job-7/attempt-3/", "RESUME_URI": ""}
    environment = {f"RELAUNCH_{name}": value for name, value in given.items()} | {"RANK": "2"}

    assert Checkpoints.from_environment(environment, stop_seconds=20) == Checkpoints(
        "file:///c/job-7/attempt-3/", "", "job-7", attempt=3, rank=2, stop_seconds=20
    )
    assert Checkpoints.from_environment({}) == Checkpoints()


@pytest.mark.parametrize(
    ("environment", "is_first"),
    [
        ({"LOCAL_RANK": "0", "NODE_RANK": "0"}, True),
        ({"LOCAL_RANK": "1", "NODE_RANK": "0"}, False),
        ({"LOCAL_RANK": "0", "NODE_RANK": "1"}, False),
        ({"RANK": "0", "LOCAL_RANK": "0", "NODE_RANK": "1"}, True),
        ({"RANK": "8", "LOCAL_RANK": "0"}, False),
    ],
    ids=str,
)
def test_one_process_alone_is_the_first_whatever_started_it(environment: dict[str, str], is_first: bool) -> None:
    assert (Checkpoints.from_environment(environment).rank == 0) == is_first


def test_the_file_is_one_to_copy_into_an_image_with_python_3_8() -> None:
    source = (EXAMPLES / "relaunch_training.py").read_text(encoding="utf-8")

    assert ast.parse(source, feature_version=(3, 8))
    assert relaunch_training.__file__ == str(EXAMPLES / "relaunch_training.py")
