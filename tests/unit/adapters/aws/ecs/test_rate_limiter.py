"""The launches of all function instances stay below the rate of ECS, and stops are not throttled."""

import pytest
import yaml

from fakes.builders import make_launch_request, task_id
from fakes.repository import REPOSITORY
from fakes.scripted_aws import ScriptedAws
from relaunch.adapters.aws.ecs.rate_limiter import LAUNCHES_PER_SECOND, MAX_CONCURRENCY, RateLimiter
from relaunch.adapters.aws.ecs.target import EcsTarget
from relaunch_local.ecs.rules.limits import rate_of

_TEMPLATE = REPOSITORY / "template.yaml"


class Sleeper:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def sleeper() -> Sleeper:
    return Sleeper()


@pytest.fixture
def rate_limiter(sleeper: Sleeper) -> RateLimiter:
    return RateLimiter(lambda: sleeper.now, sleeper.sleep)


def test_the_first_launch_of_a_container_waits_for_nothing(rate_limiter, sleeper):
    rate_limiter.wait()

    assert sleeper.now == 1_000.0


def test_a_container_keeps_to_its_part_of_the_rate(rate_limiter, sleeper):
    for _ in range(39):
        rate_limiter.wait()

    assert sleeper.now - 1_000.0 == pytest.approx(38 * MAX_CONCURRENCY / LAUNCHES_PER_SECOND)


def test_who_took_longer_than_a_turn_does_not_wait(rate_limiter, sleeper):
    rate_limiter.wait()
    sleeper.now += 5.0
    rate_limiter.wait()

    assert sleeper.now == 1_005.0


def test_all_together_leave_a_part_of_the_bucket_to_stops():
    assert rate_of("RunTask") == rate_of("StopTask")
    assert rate_of("RunTask")[1] > LAUNCHES_PER_SECOND


def test_as_many_containers_share_the_rate_as_the_template_lets_run():
    text = _TEMPLATE.read_text()
    text = text[text.index("  LaunchAttemptFunction:") :]
    line = next(line for line in text.splitlines() if "MaximumConcurrency" in line)

    assert yaml.safe_load(line)["ScalingConfig"]["MaximumConcurrency"] == MAX_CONCURRENCY


def test_a_container_that_ecs_throttled_gives_way_before_its_next_launch(rate_limiter, sleeper):
    ecs = ScriptedAws("ecs")
    target = EcsTarget(ecs.client, "relaunch", rate_limiter=rate_limiter)
    ecs.refuse("RunTask", "ThrottlingException", "Rate exceeded")
    ecs.answer("RunTask", tasks=[{"taskArn": task_id()}], failures=[])

    target.launch(make_launch_request())
    target.launch(make_launch_request())

    assert sleeper.now == 1_003.0
