"""A story on machines of our own of a job with a limit on its time: spot in one zone, and on-demand."""

from dataclasses import replace
from datetime import timedelta

from fakes.builders import make_definition
from fakes.machine_story import G5, MachineStory, make_own_offering
from fakes.story import MINUTE, Story
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.lifecycle.decision import HEARTBEAT
from relaunch.core.machines.events import RefusalKind
from relaunch.core.market.policies import PolicyName

HOUR = timedelta(hours=1)
WITHIN = {"estimated_duration": 10 * HOUR, "deadline": 20 * HOUR, "padding": 0.0, "policy": PolicyName.UNIFORM_PROGRESS}
ON_DEMAND = replace(G5, purchase=PurchaseOption.ON_DEMAND)
FULL = (RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity")


def within(**fields) -> MachineStory:
    """Return a story of a job with a deadline, with spot of machines of our own in one zone, and on-demand."""
    story = MachineStory()
    story.offerings.available = (make_own_offering(G5, 0.40), make_own_offering(ON_DEMAND, 1.00))
    story.deps.definitions.save_definition(make_definition(**WITHIN | fields))
    return story


def run_on_demand(story: MachineStory) -> str:
    """Let a job run on on-demand, because EC2 had no spot when it was launched; it has some again."""
    story.fleet.refused[G5] = FULL
    job_id = story.submit()
    story.clock.advance(MINUTE)
    story.settle_all()
    story.register(story.machine(job_id))
    story.settle_all()
    story.run(job_id)
    assert story.attempt(job_id).placement.offering.purchase is PurchaseOption.ON_DEMAND
    del story.fleet.refused[G5]
    return job_id


def save(story: Story, job_id: str, step: int = 100) -> None:
    """Let the task save a checkpoint now."""
    number = story.attempt(job_id).number
    story.checkpoints.complete[job_id] = f"s3://acme-checkpoints/resnet/{job_id}/attempt-{number}/step-{step:07d}/"
    story.checkpoints.saved_at = story.now


def look(story: MachineStory) -> None:
    """Let the next look at the running job come."""
    story.reconcile(HEARTBEAT)
    story.settle_all()
