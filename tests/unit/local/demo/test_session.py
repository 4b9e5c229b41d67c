import io
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from fakes.builders import make_job
from relaunch.core.jobs.job import JobState
from relaunch.ports import JobHistory
from relaunch_local.demo import command
from relaunch_local.demo.outcome import Outcome
from relaunch_local.demo.recorder import Recorder
from relaunch_local.demo.runner import TRAINING, shorten_url, without_aws_settings
from relaunch_local.demo.screen import Screen
from relaunch_local.demo.session import Session, UnmetExpectationError
from relaunch_local.stack.build import NotBuiltError
from relaunch_local.stack.emulator import EmulatorError


def make_session(history: JobHistory | None = None, timeout_seconds: float = 0.0) -> Session:
    connection: Any = SimpleNamespace(deps=SimpleNamespace(jobs=SimpleNamespace(load_history=lambda _job_id: history)))
    local: Any = None
    screen = Screen(Console(file=io.StringIO()))
    return Session(local, connection, screen, Recorder(list), timeout_seconds)


class TestExpect:
    def test_what_comes_is_returned(self) -> None:
        looks = iter([None, "value"])

        assert make_session(timeout_seconds=5).expect("something", lambda: next(looks)) == "value"

    def test_what_does_not_come_in_time_is_named(self) -> None:
        with pytest.raises(UnmetExpectationError, match=r"^not within 0 s: a unicorn$"):
            make_session().expect("a unicorn", lambda: None)

    def test_a_job_that_is_over_gives_no_more_hope(self) -> None:
        job = make_job("demo-1", state=JobState.FAILED, reason="exit code 1")
        session = make_session(JobHistory(job, (), (), ()), timeout_seconds=60)

        with pytest.raises(UnmetExpectationError, match=r"demo-1 is FAILED \(exit code 1\) before this: it runs"):
            session.expect_job("demo-1", "it runs", lambda _history: None)

    def test_a_job_that_is_not_there_yet_may_come(self) -> None:
        with pytest.raises(UnmetExpectationError, match="not within"):
            make_session().expect_job("demo-1", "it runs", lambda _history: None)

    def test_what_must_be_true_by_now_is_insisted_on(self) -> None:
        session = make_session()
        session.require(True, "two and two are four")

        with pytest.raises(UnmetExpectationError, match="two and two are five"):
            session.require(False, "two and two are five")


class TestCommand:
    @pytest.fixture(autouse=True)
    def _in_a_folder_of_its_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

    def run(self, monkeypatch: pytest.MonkeyPatch, error: Exception) -> tuple[int, Outcome]:
        def fail(_outcome: Outcome, _screen: Screen) -> None:
            raise error

        monkeypatch.setattr(command, "run_demo", fail)
        outcome = Outcome(40.0, TRAINING)
        return command.run(outcome, Screen(Console(quiet=True))), outcome

    def test_what_keeps_the_world_from_opening_is_said_in_one_line(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, outcome = self.run(monkeypatch, NotBuiltError("the application is not built: run `make build`"))

        assert code == 2
        assert outcome.result == "not opened"
        assert capsys.readouterr().err == "demo: the application is not built: run `make build`\n"

    def test_a_long_error_goes_to_a_file_but_for_its_first_line(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        code, _ = self.run(monkeypatch, EmulatorError("the emulator did not start:\nTraceback\nno memory"))

        assert code == 2
        assert capsys.readouterr().err == ("demo: the emulator did not start; what it said is in demo-failure.log\n")
        assert (tmp_path / "demo-failure.log").read_text() == "Traceback\nno memory"

    def test_a_port_that_cannot_be_had_is_named_as_what_it_is(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.run(monkeypatch, OSError(98, "Address already in use"))

        assert capsys.readouterr().err == (
            "demo: the local world cannot be opened: [Errno 98] Address already in use\n"
        )

    def test_a_story_that_does_not_come_true_says_where_to_look(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, _ = self.run(monkeypatch, UnmetExpectationError("not within 5 s: a unicorn"))
        said = capsys.readouterr().err

        assert code == 1
        assert said.startswith("demo: not within 5 s: a unicorn\n")
        assert "demo.json" in said
        assert "demo-failure.log" in said

    @pytest.mark.parametrize("text", ["0", "-1", "101", "nan", "fast"])
    def test_a_speed_that_makes_no_sense_is_refused(self, text: str, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as ended:
            command.show(["--speed", text])

        assert ended.value.code == 2
        assert "--speed" in capsys.readouterr().err


def test_the_users_aws_settings_and_proxies_are_kept_away_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    with without_aws_settings():
        assert "AWS_PROFILE" not in os.environ
        assert "https_proxy" not in os.environ
        os.environ["AWS_REGION"] = "eu-central-1"

    assert os.environ["AWS_PROFILE"] == "production"
    assert os.environ.get("AWS_REGION") != "eu-central-1"


def test_a_function_url_fits_on_the_line() -> None:
    url = "http://127.0.0.1:40215/_aws/lambda-url/x451waak2z20tap8dc9v0zq9zln3mppo/"

    assert shorten_url(f"the webhook is at {url}") == "the webhook is at http://127.0.0.1:40215/_aws/lambda-url/…/"
