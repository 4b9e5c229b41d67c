"""Days in which machines are launched, paid for, and of no use."""

from datetime import timedelta

from fakes.builders import make_failed_placement
from fakes.machine_story import MachineStory
from fakes.story import MINUTE
from relaunch.core.jobs.cost import cost_so_far
from relaunch.core.jobs.state import JobState


def watch(story: MachineStory, hours: float) -> None:
    """Let hours pass in which reconcile runs every minute."""
    until = story.now + timedelta(hours=hours)
    while story.now < until:
        story.look(after=MINUTE)
        story.reconcile()
        story.settle_all()


def test_a_job_whose_machines_never_register_gets_six_in_a_day_pays_for_them_and_fails():
    story = MachineStory()
    job_id = story.start()

    watch(story, 23.5)
    asked = len(story.fleet.requests)
    assert asked <= 6
    assert story.job(job_id).state is JobState.WAITING
    watch(story, 2)

    job = story.job(job_id)
    assert job.state is JobState.FAILED
    assert "it never registered" in job.reason
    usd, _ = cost_so_far(job, story.now)
    # Each lives for five minutes and some seconds, at 0.40 to 1.10 USD per hour.
    assert asked * 0.40 / 12 <= usd <= 7 * 1.10 / 10
    assert {each.overrides[0].offering.instance_type for each in story.fleet.requests} == {"g5.xlarge", "g6.xlarge"}


def test_a_job_that_the_cluster_places_nowhere_gets_six_machines_in_a_day():
    story = MachineStory()
    story.tasks.launch = lambda _request: make_failed_placement("MemberOf placement constraint unsatisfied.")
    job_id = story.start()

    until = story.now + timedelta(hours=23.5)
    while story.now < until:
        job = story.job(job_id)
        if job.machine_id and story.machine(job_id).instance_id:
            story.register(story.machine(job_id))
        story.look(after=MINUTE)
        story.reconcile()
        story.settle_all()

    assert len(story.fleet.requests) == 6
    assert "MemberOf placement constraint unsatisfied." in story.job(job_id).reason
    assert story.job(job_id).useless_machines_usd > 0


def test_jobs_that_come_later_know_of_an_image_of_which_no_machine_became_ready():
    story = MachineStory()
    job_ids = []
    for number in range(20):
        job_ids.append(story.start(f"{number:040x}"))
        watch(story, 0.25)

    assert len(story.fleet.requests) <= 12
    assert "machines of the stack do not become ready" in story.job(job_ids[-1]).reason
