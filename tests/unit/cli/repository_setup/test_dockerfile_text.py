import json

import pytest

from relaunch_cli.repository_setup.dockerfile_text import (
    GPU_CONTAINER,
    NEURON_CONTAINER,
    dockerfile_text,
    is_large,
    missing_lines,
    read_program,
)
from relaunch_cli.repository_setup.training import AcceleratorKind, BaseImage, Training


@pytest.mark.parametrize(
    ("kind", "container"),
    [
        (AcceleratorKind.GPU, GPU_CONTAINER),
        (AcceleratorKind.SHARE, GPU_CONTAINER),
        (AcceleratorKind.NEURON, NEURON_CONTAINER),
    ],
)
def test_the_deep_learning_container_is_that_of_the_accelerator(kind, container):
    text = dockerfile_text(Training("vision", kind))

    assert text.splitlines()[0] == f"FROM {container}"
    assert is_large(text)


def test_a_training_can_do_without():
    text = dockerfile_text(Training("vision", base_image=BaseImage.PYTHON))

    assert not is_large(text)
    assert "/python:" in text.splitlines()[0]


@pytest.mark.parametrize("base", BaseImage)
def test_an_image_that_mounts_buckets_installs_mountpoint_and_others_do_not(base):
    mounts = '"mount-s3 --read-only acme-data /data"'
    with_it = dockerfile_text(Training("vision", base_image=base, is_mounting=True))
    without = dockerfile_text(Training("vision", base_image=base))

    assert "ADD https://s3.amazonaws.com/mountpoint-s3-release/latest/x86_64/mount-s3.deb /tmp/" in with_it.splitlines()
    assert "apt-get install --yes /tmp/mount-s3.deb" in with_it
    assert "mount" not in without
    assert [bool(missing_lines(each, mounts)) for each in (with_it, without, None)] == [False, True, True]
    assert not missing_lines(None, '"python"')


def test_no_shell_stands_between_ecs_and_the_training():
    lines = dockerfile_text(Training("vision", command=("python", "-m", "train", "--name", 'a "b"'))).splitlines()

    assert "ENTRYPOINT []" in lines
    assert json.loads(lines[-1].removeprefix("CMD ")) == ["python", "-m", "train", "--name", 'a "b"']


@pytest.mark.parametrize(
    ("dockerfile", "program"),
    [
        (dockerfile_text(Training("vision")), ((), ("python", "train.py"))),
        ('FROM a\nENTRYPOINT ["python"]\ncmd ["train.py"]\n', (("python",), ("train.py",))),
        ("FROM a\nCMD python train.py && true\n", ((), ("/bin/sh", "-c", "python train.py && true"))),
        ('FROM a\n# CMD ["b"]\nCMD ["python", \\\n  # said\n  "train.py"]\n', ((), ("python", "train.py"))),
        ('FROM a AS build\nENTRYPOINT ["make"]\nFROM a\nCMD ["x"]\n', ((), ("x",))),
        ("FROM a\n", ((), ())),
    ],
)
def test_the_program_is_that_of_the_last_stage(dockerfile, program):
    assert read_program(dockerfile) == program
