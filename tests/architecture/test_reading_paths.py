"""How many files of the layer somebody reads who follows a push to its machine, or a warning to the next one.

Followed are the calls that a story makes, from one file of the layer to another. The limits are what there is today:
whoever adds a file to a path sees it here, and lowers a limit where a path has become shorter.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple

import pytest

from fakes.machine_story import MachineStory
from fakes.repository import REPOSITORY

_LAYER = f"{REPOSITORY / 'layers' / 'relaunch' / 'relaunch'}/"
# The methods that all dataclasses share, which nobody follows.
_SHARED = f"{_LAYER}core/records.py"


class Path(NamedTuple):
    """What is called: the files, and the number of calls from one of them to another."""

    files: set[str]
    crossings: list[tuple[str, str]]


@contextmanager
def followed() -> Iterator[Path]:
    path = Path(set(), [])

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(_LAYER) or frame.f_code.co_name == "<module>":
            return
        if frame.f_code.co_filename == _SHARED:
            return
        caller = frame.f_back
        while caller is not None and (
            caller.f_code.co_filename == _SHARED or not caller.f_code.co_filename.startswith(_LAYER)
        ):
            caller = caller.f_back
        called = frame.f_code.co_filename.removeprefix(_LAYER)
        path.files.add(called)
        if caller is not None and (calling := caller.f_code.co_filename.removeprefix(_LAYER)) != called:
            path.crossings.append((calling, called))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield path
    finally:
        sys.setprofile(before)


@pytest.fixture(autouse=True)
def remembered() -> None:
    """Do all of it once: what is computed once for all is no part of the path, whichever test comes first."""
    story = MachineStory()
    job_id = push(story)
    story.register(story.machine(job_id))
    story.settle_all()
    story.run(job_id)
    warning(story)


def push(story: MachineStory) -> str:
    """Let a push start a job, which requests its machine."""
    job_id = story.submit_and_deliver()
    story.make_ec2_calls()
    return job_id


def warning(story: MachineStory) -> None:
    """Let a job train, and EC2 warn of the machine; the next one is requested."""
    (machine_id,) = (each.instance_id for each in story.fleet.instances.values())
    story.warn(machine_id)
    story.settle_all()


def test_a_push_takes_no_more_files_than_it_did() -> None:
    story = MachineStory()
    with followed() as path:
        push(story)

    assert "usecases/choose_placement.py" in path.files
    # With the concurrency group of the job, the purchase options that it may take, and two files for light imports:
    # `relaunch ps` and `relaunch logs` read keys of offerings and containers, and nothing else of a definition. Two
    # more have what jobs pay for machines, three what they reserve of budgets.
    assert len(path.files) <= 80
    assert len(set(path.crossings)) <= 166


def test_a_warning_takes_no_more_files_than_it_did() -> None:
    story = MachineStory()
    job_id = push(story)
    story.register(story.machine(job_id))
    story.settle_all()
    story.run(job_id)
    with followed() as path:
        warning(story)

    assert "usecases/hand_over.py" in path.files
    assert len(path.files) <= 83
    assert len(set(path.crossings)) <= 179
