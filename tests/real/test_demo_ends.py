"""However early the demo ends, it removes everything, and prints one line about the error."""

from pathlib import Path

import pytest

from fakes.demo_process import running_demo


class TestCtrlC:
    @pytest.mark.parametrize(
        "moment",
        [
            pytest.param("ECS simulator", id="while the emulator starts"),
            pytest.param("deploying template.yaml", id="while the template is deployed"),
        ],
    )
    def test_ctrl_c_leaves_nothing_behind(self, built: str, moment: str, tmp_path: Path) -> None:
        assert built
        with running_demo(tmp_path) as demo:
            demo.read_until(moment)
            demo.interrupt()
            code = demo.finish()

        assert moment in demo.output
        assert code == 130
        assert demo.errors.splitlines() == ["demo: interrupted; the local world is removed"]
        assert demo.remains() == []
        assert list(tmp_path.iterdir()) == []


class TestBadInput:
    def test_a_speed_that_makes_no_sense_is_refused(self, tmp_path: Path) -> None:
        with running_demo(tmp_path, "--speed", "0") as demo:
            assert demo.finish() == 2
        assert "0 is not from 1 to 100" in demo.errors
