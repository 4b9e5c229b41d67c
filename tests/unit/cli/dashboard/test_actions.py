"""What forms do: the same as the commands, with the same errors."""

import pytest

from fakes.dashboard_world import DashboardWorld
from relaunch.ports import PermanentError
from relaunch_cli.dashboard import actions
from relaunch_cli.errors import CommandError


@pytest.fixture(scope="module")
def world() -> DashboardWorld:
    return DashboardWorld()


def test_a_job_is_cancelled_once(world: DashboardWorld) -> None:
    assert actions.cancel("wait-image", "  a typo ", world) == "it is CANCELLED"
    assert actions.cancel("wait-image", "again", world) == "it had already ended: CANCELLED"
    assert world.jobs.job("wait-image").reason == f"a typo (cancelled by {world.caller})"


def test_a_running_job_has_time_to_save(world: DashboardWorld) -> None:
    assert "has time to save" in actions.cancel(world.running, "", world)
    assert world.jobs.job(world.running).cancel_requested == f"cancelled by {world.caller}"


def test_a_cancellation_that_aws_denies_is_an_error(world: DashboardWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(_decision: object) -> None:
        raise PermanentError("AWS denies TransactWriteItems")

    monkeypatch.setattr(world.jobs, "save_job", deny)
    with pytest.raises(PermanentError, match="denies"):
        actions.cancel("wait-budget", "", world)


def test_the_same_form_retries_once(world: DashboardWorld) -> None:
    first, again, other = (actions.retry("failed-1f2e", key, world) for key in ("k", "k", "other"))

    assert first == again != other
    assert world.jobs.job(first).definition.name == "resnet"


def test_an_open_job_is_not_retried(world: DashboardWorld) -> None:
    with pytest.raises(CommandError, match="wait until it has ended"):
        actions.retry("launching-5e07", "k", world)


def test_the_same_form_submits_once_and_other_inputs_of_it_are_refused(world: DashboardWorld) -> None:
    first = actions.submit("bert", {"epochs": "3"}, "s", world)

    assert actions.submit("bert", {"epochs": "3"}, "s", world) == first
    assert world.jobs.job(first).inputs == {"epochs": "3", "seed": "7"}
    with pytest.raises(CommandError):
        actions.submit("bert", {"epochs": "4"}, "s", world)


@pytest.mark.parametrize(
    ("name", "given", "key", "message"),
    [
        ("bert", {"epochs": "many"}, "k", "epochs"),
        ("bert", {"epoch": "3"}, "k", "epoch"),
        ("brt", {}, "k", "there is no job definition 'brt'"),
        ("bert", {}, "", "load the page again"),
    ],
)
def test_bad_input_is_the_error_of_the_command(world: DashboardWorld, name, given, key, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        actions.submit(name, given, key, world)
