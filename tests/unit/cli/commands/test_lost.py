"""lost."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.cli_session import flat
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import StopKind
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import Decision


@pytest.fixture
def out_of_reach(session):
    """The ID of a job on ACK whose pod has been stopping for an hour."""
    job_id = session.submit()
    session.run(session.launch(job_id))
    job = session.jobs.job(job_id)
    workload = KubernetesWorkload("image:v1")
    definition = replace(job.definition, target=Target.ACK, kubernetes=workload, checkpoint_uri="s3://acme/")
    since = session.clock.now() - timedelta(hours=1)
    attempt = replace(job.current_attempt, instance_id=None, node="node-1")
    stopping = replace(job, definition=definition, state=JobState.STOPPING, state_since=since, attempt=attempt)
    session.jobs.save_job(Decision(replace(stopping, pending=())))
    return job_id


def test_a_pod_is_given_up_once_somebody_says_yes(relaunch, session, out_of_reach):
    refused = relaunch("lost", out_of_reach, answer="n\n")
    before = session.jobs.job(out_of_reach)
    result = relaunch("lost", out_of_reach, "--yes")

    assert refused.exit_code == 130
    assert "on node-1 for lost?" in refused.stderr
    assert before.state is JobState.STOPPING
    assert "the functions go on with it within minutes: the stack has no target ack" in flat(result.stderr)
    assert result.stdout == f"{out_of_reach} was STOPPING and is WAITING now; its pod may live on node-1\n"
    assert session.jobs.job(out_of_reach).current_attempt.stop.kind is StopKind.HOST_LOST


def test_the_document_has_the_state_before(relaunch, out_of_reach):
    document = relaunch("lost", out_of_reach, "--yes", "--json").document

    assert (document["state_before"], document["state"]) == ("STOPPING", "WAITING")


def test_what_is_not_given_up_says_why(relaunch, session):
    job_id = session.submit()

    result = relaunch("lost", job_id, "--yes")

    assert result.exit_code == 2
    assert "its task is on an EC2 instance: terminate that" in result.stderr
    assert "may be somebody else" in relaunch("lost", "-").stderr
