from pathlib import Path

import pytest
from rich.console import Console

from relaunch_local.demo import command
from relaunch_local.demo.outcome import Outcome
from relaunch_local.demo.runner import TRAINING
from relaunch_local.demo.screen import Screen
from relaunch_local.demo.session import UnmetExpectationError
from relaunch_local.stack.build import NotBuiltError
from relaunch_local.stack.emulator import EmulatorError


class TestCommand:
    @pytest.fixture(autouse=True)
    def _in_a_folder_of_its_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

    def run(self, monkeypatch: pytest.MonkeyPatch, error: Exception) -> tuple[int, Outcome]:
        def fail(_outcome: Outcome, _screen: Screen) -> None:
            raise error

        monkeypatch.setattr(command, "run_demo", fail)
        outcome = Outcome(40.0, TRAINING)
        return command.run_and_report(outcome, Screen(Console(quiet=True))), outcome

    def test_an_error_on_opening_the_world_is_printed_in_one_line(
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
            command.run(["--speed", text])

        assert ended.value.code == 2
        assert "--speed" in capsys.readouterr().err
