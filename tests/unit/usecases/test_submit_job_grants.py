"""Jobs of task definitions that the stack may not run, or not any more."""

import pytest

from fakes.builders import make_definition, make_revision
from fakes.sources import FakeRevisions
from fakes.story import Story
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch.core.revisions.revision import TaskDefinitionGrants

LIMITS = StackLimits(task_definitions=TaskDefinitionGrants(("trainer",), "relaunch/"))
ADMIN = "arn:aws:iam::111122223333:role/admin"


def test_a_stored_definition_of_another_family_fails_its_job_without_a_look_at_ecs():
    story = Story(make_definition(task_definition="payroll"), limits=LIMITS)

    job = story.job(story.submit())

    assert job.state is JobState.FAILED
    assert job.reason.startswith("the stack may not run task definitions of the family payroll: its parameter")
    assert job.ended_at == story.now
    assert story.launches.requested == []
    assert story.revisions.call_count == 0


@pytest.mark.parametrize("field", ["task_role_arn", "execution_role_arn"])
def test_a_revision_with_a_role_of_another_path_fails_its_job(field):
    story = Story(limits=LIMITS, revisions=FakeRevisions(make_revision(**{field: ADMIN})))

    job = story.job(story.submit())

    assert job.state is JobState.FAILED
    assert f"{ADMIN}: its parameter TaskRolePath has relaunch/" in job.reason
    assert story.launches.requested == []


def test_what_is_allowed_is_launched():
    role = "arn:aws:iam::111122223333:role/relaunch/trainer"
    story = Story(limits=LIMITS, revisions=FakeRevisions(make_revision(task_role_arn=role, execution_role_arn=role)))

    story.submit_and_deliver()

    assert len(story.tasks.requests) == 1
