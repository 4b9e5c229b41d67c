import pytest

from relaunch_cli.errors import CommandError
from relaunch_cli.repository_setup.training import (
    AcceleratorKind,
    Training,
    Uploads,
    name_of,
    read_command,
    read_uploads,
)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"name": "Vision"}, "'Vision' is no name of a job definition"),
        ({"name": "v" * 49}, "is no name"),
        ({"count": 0}, "1 to 16 GPUs or Neuron devices, not 0"),
        ({"count": 17}, "not 17"),
        ({"kind": AcceleratorKind.SHARE, "count": 2}, "a share is of one GPU"),
        ({"gpu_memory_gib": 0}, "at least 1 GiB"),
        ({"compute_percent": 101}, "101 is no share of a GPU"),
        ({"vcpus": 0}, "at least 1 vCPU"),
        ({"command": ()}, "the command is empty"),
        ({"stop_timeout_seconds": 121}, "1 to 120 seconds"),
        ({"duration": "2 hours"}, "'2 hours' is no duration"),
        ({"duration": ""}, "is no duration"),
    ],
)
def test_what_could_never_be_registered_is_refused(wrong, reason):
    with pytest.raises(CommandError) as refused:
        Training(**{"name": "vision", **wrong})

    assert reason in str(refused.value)


def test_a_command_is_split_as_a_shell_does():
    assert read_command("python -m train --name 'a b'") == ("python", "-m", "train", "--name", "a b")
    with pytest.raises(CommandError, match="is no command: No closing quotation"):
        read_command("python 'train.py")


def test_uploads_are_named_by_their_uri():
    assert read_uploads("s3://acme-data") == Uploads("acme-data", "")
    assert read_uploads("s3://acme-data/images/a b/") == Uploads("acme-data", "images/a b/")
    with pytest.raises(CommandError, match="names no uploads"):
        read_uploads("acme-data/images")


@pytest.mark.parametrize(
    ("repository", "name"),
    [
        ("acme/vision", "vision"),
        ("acme/Big_Vision.v2", "big-vision-v2"),
        ("acme/3d", "training-3d"),
        ("acme/---", "training"),
        (f"acme/{'v' * 60}", "v" * 48),
    ],
)
def test_a_training_is_called_like_its_repository(repository, name):
    assert Training(name_of(repository)).name == name
