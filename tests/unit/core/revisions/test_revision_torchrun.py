import pytest

from relaunch.core.revisions.revision import has_shell_before, runs_torchrun, shutdown_seconds


@pytest.mark.parametrize(
    ("command", "is_torchrun", "has_shell"),
    [
        (("torchrun", "train.py"), True, False),
        (("/opt/venv/bin/torchrun", "--nproc-per-node=8", "train.py"), True, False),
        (("python", "-m", "torch.distributed.run", "train.py"), True, False),
        (("python", "-m", "torch.distributed.launch", "train.py"), True, False),
        (("bash", "-c", "cd /src && exec torchrun train.py"), True, False),
        (("/bin/sh", "-c", "torchrun train.py"), True, True),
        (("sh", "-ec", "nvidia-smi;torchrun train.py"), True, True),
        (("python", "my_torchrun.py"), False, False),
        (("python", "-m", "torch.distributed.runner"), False, False),
        (("sh", "-c", "python train.py"), False, True),
        ((), False, False),
    ],
)
def test_torchrun_is_found_by_itself_and_in_a_shell(command, is_torchrun, has_shell):
    assert runs_torchrun(command) is is_torchrun
    assert has_shell_before(command) is has_shell


@pytest.mark.parametrize(("stop_timeout", "seconds"), [(90, 85), (30, 25), (5, 0), (0, 0)])
def test_torchrun_ends_before_sigkill(stop_timeout, seconds):
    assert shutdown_seconds(stop_timeout) == seconds
