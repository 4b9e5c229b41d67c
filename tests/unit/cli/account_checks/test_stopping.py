"""Which command lines keep SIGTERM from the training, and which stop time-outs are too short."""

import pytest

from relaunch.core.checks import Verdict
from relaunch.core.revisions.revision import StopTimeout
from relaunch_cli.account_checks.stopping import MainProcess, check_sigterm, check_stop_timeout

OK, PROBLEM, UNKNOWN = Verdict.OK, Verdict.PROBLEM, Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("entry_point", "command", "verdict"),
    [
        ((), ("python", "-m", "train"), OK),
        (("python",), ("train.py",), OK),
        ((), (), OK),
        (("/bin/sh", "-c"), ("exec python train.py",), OK),
        (("bash", "-c"), ("cd /work && exec python train.py",), OK),
        (("bash", "-c"), ("source env.sh; exec python train.py --name 'a; b'",), OK),
        (("bash", "-euo", "pipefail", "-c"), ("export A=1\nexec torchrun train.py",), OK),
        (("sh", "-c"), ("cd /work && python train.py",), PROBLEM),
        (("sh", "-c"), ("python train.py; echo done",), PROBLEM),
        (("sh", "-c"), ("python train.py | tee log",), PROBLEM),
        (("sh", "-c"), ("exec python prepare.py && python train.py",), PROBLEM),
        (("bash", "-lc"), ("conda activate x\npython train.py",), PROBLEM),
        (("sh", "-c"), ("python train.py &\nwait",), PROBLEM),
        (("sh", "-c"), ("python train.py > log 2>&1",), UNKNOWN),
        (("sh", "-c"), ("python train.py --name 'a; b && c'",), UNKNOWN),
        (("sh", "-c"), ("",), UNKNOWN),
        ((), ("bash", "train.sh"), UNKNOWN),
        ((), ("bash",), UNKNOWN),
        (("bash", "-c"), ("trap 'kill $pid' TERM; python train.py & pid=$!; wait $pid",), UNKNOWN),
    ],
)
def test_a_shell_passes_no_signal_on(entry_point: tuple[str, ...], command: tuple[str, ...], verdict: Verdict) -> None:
    check = check_sigterm("resnet", MainProcess(entry_point, command))

    assert (check.name, check.verdict) == ("resnet: SIGTERM", verdict)


def test_an_init_process_is_no_remedy() -> None:
    check = check_sigterm("resnet", MainProcess(("sh", "-c"), ("cd /w; python t.py",), has_init=True))

    assert check.verdict is PROBLEM
    assert "the init process passes it to the shell alone" in check.text


@pytest.mark.parametrize(
    ("seconds", "is_own", "verdict"), [(90, False, OK), (90, True, OK), (120, True, OK), (89, True, PROBLEM)]
)
def test_a_stop_timeout_leaves_what_a_warning_leaves(seconds: int, is_own: bool, verdict: Verdict) -> None:
    assert check_stop_timeout("resnet", StopTimeout(seconds, is_own)).verdict is verdict
