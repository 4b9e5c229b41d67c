"""The usual story, and the usual job at the points of its life where most tests begin."""

from collections.abc import Callable

import pytest

from fakes.machine_story import MachineStory
from fakes.story import Story


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.fixture
def running_id(story) -> str:
    """Return the id of a job whose task runs on `machine()`."""
    return story.launch()


@pytest.fixture
def placed_id(story) -> str:
    """Return the id of a job whose task is placed and does not run yet."""
    return story.submit_and_deliver()


@pytest.fixture
def launching(story) -> Callable[..., tuple[Story, str]]:
    """Return a function that submits a job with these outcomes of RunTask; it returns the story and the job's id."""

    def submit(*outcomes: object) -> tuple[Story, str]:
        story.tasks.outcomes.extend(outcomes)
        return story, story.submit()

    return submit


@pytest.fixture
def machines() -> MachineStory:
    """Return a story on machines of our own."""
    return MachineStory()
