"""The time from SIGTERM to SIGKILL."""

import pytest

from fakes.builders import make_container, make_definition, make_revision
from relaunch.core.revisions.revision import STOP_TIMEOUT_SECONDS, StopTimeout, find_stop_timeout


@pytest.mark.parametrize(
    ("own", "expected"),
    [(None, StopTimeout(90, is_own=False)), (90, StopTimeout(90, is_own=True)), (0, StopTimeout(0, is_own=True))],
    ids=["set by Relaunch", "own", "own, none at all"],
)
def test_it_is_that_of_the_main_container_or_what_a_spot_warning_leaves(own, expected):
    sidecar = make_container(name="proxy", stop_timeout_seconds=5)
    revision = make_revision(containers=(sidecar, make_container(stop_timeout_seconds=own)))

    assert find_stop_timeout(make_definition(container="main"), revision) == expected


def test_it_is_not_known_without_a_main_container():
    two = make_revision(containers=(make_container(name="a"), make_container(name="b")))

    assert find_stop_timeout(make_definition(container=None), two) is None
    assert find_stop_timeout(make_definition(container="c"), two) is None


def test_it_ends_within_a_spot_warning_with_room_for_the_way_to_sigterm():
    assert STOP_TIMEOUT_SECONDS == 120 - 30


@pytest.mark.parametrize(
    ("stop_timeout", "text"),
    [
        (
            StopTimeout(90, is_own=False),
            "SIGKILL follows SIGTERM after 90 s: set by Relaunch, for the task definition has no `stopTimeout`",
        ),
        (StopTimeout(90, is_own=True), "SIGKILL follows SIGTERM after 90 s: `stopTimeout` of the task definition"),
        (
            StopTimeout(30, is_own=True),
            "SIGKILL follows SIGTERM after 30 s: `stopTimeout` of the task definition; "
            "a spot warning leaves about 90 s",
        ),
    ],
)
def test_its_sentence_says_who_set_it_and_what_a_spot_warning_leaves(stop_timeout, text):
    assert str(stop_timeout) == text
