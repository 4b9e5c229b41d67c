import json

import pytest

from relaunch_local.sam_local.run import Result
from relaunch_local.sam_local.screen import Screen

SUCCEEDED = Result(
    "job_api.show",
    "JobApiFunction",
    "shown",
    has_failed=False,
    what="resnet-1 is RUNNING",
    seconds=0.04,
    answer={"job": {}},
    log="quiet",
)
FAILED = Result(
    "job_api.cancel",
    "JobApiFunction",
    "stopped",
    has_failed=True,
    what="it runs \x1b[2J on",
    seconds=1.5,
    log="one\ntwo\x07",
)


def test_each_sample_has_a_line_and_a_failed_one_what_its_function_logged(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(as_json=False)

    screen.result(SUCCEEDED)
    screen.result(FAILED)
    screen.summary([SUCCEEDED, FAILED])

    shown = capsys.readouterr().out
    first, second, *log = shown.splitlines()
    assert first.split() == ["ok", "job_api.show", "shown", "0.0", "s", "resnet-1", "is", "RUNNING"]
    assert second.startswith("FAILED job_api.cancel")
    assert [line.strip() for line in log[:2]] == ["| one", "| two\N{REPLACEMENT CHARACTER}"]
    assert "quiet" not in shown
    assert "\x1b" not in shown
    assert "2 samples, 2 outcomes" in shown
    assert shown.endswith("1 shown\nFAILED job_api.cancel: stopped\n")


def test_machines_get_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(as_json=True)

    screen.progress("starting")
    screen.result(FAILED)
    screen.summary([SUCCEEDED, FAILED])

    captured = capsys.readouterr()
    printed = json.loads(captured.out)
    assert "starting" in captured.err
    assert (printed["failed"], [each["sample"] for each in printed["results"]]) == (
        1,
        [SUCCEEDED.sample, FAILED.sample],
    )
    assert printed["results"][1]["log"] == ["one", "two\x07"]
