"""A call of a function is sent as often as its client is configured to, and each send may fail by itself."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ReadTimeoutError

from relaunch.adapters.aws.client_config import CLIENT_CONFIG, SINGLE_SEND_CONFIG
from relaunch.adapters.aws.errors import was_repeated
from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.calls import Calls
from relaunch_local.simulation.aws.clients import AWS_ERRORS
from relaunch_local.simulation.aws.runtime import Invocation, Runtime
from relaunch_local.simulation.chance import Chance


@dataclass(slots=True)
class ScriptedCalls(Calls):
    """Calls whose sends have these faults, one after the other."""

    script: list[str] = field(default_factory=list)

    def _choose(self, invocation: Invocation, name: str, share: float) -> str:
        return self.script.pop(0)


class World:
    """A function that makes one call."""

    def __init__(self) -> None:
        self.clock = Clock()
        chance = Chance(7, self.clock.now)
        chance.is_calm = True
        self.runtime = Runtime(self.clock, chance, lambda _line: None)
        self.calls = ScriptedCalls(self.runtime, chance)
        self.effects: list[datetime] = []
        self.error: BaseException | None = None
        self.seconds = 0.0

    def call(self, *faults: str, config: Config = CLIENT_CONFIG, effect: Callable[[], Any] = lambda: None) -> None:
        """Make a call with these faults; its error is kept."""
        self.calls.script = list(faults)
        began_at = self.clock.now()

        def effect_noted() -> Any:
            self.effects.append(self.clock.now())
            return effect()

        def body() -> None:
            self.calls.perform("ecs", "stop_task", effect_noted, AWS_ERRORS, config)

        def end(_answer: Any, error: BaseException | None) -> None:
            self.error = error
            self.seconds = (self.clock.now() - began_at).total_seconds()

        self.runtime.start(Invocation(1, "reconcile"), body, end)
        self.clock.run_until(lambda: self.seconds > 0.0)


@pytest.fixture
def world() -> World:
    return World()


def test_a_call_that_took_effect_and_lost_its_answer_is_sent_again(world: World) -> None:
    world.call("call-answer-lost", "")
    assert (len(world.effects), world.error) == (2, None)


def test_a_call_that_is_not_answered_is_sent_again_after_its_time_out(world: World) -> None:
    world.call("call-unanswered", "")
    assert (len(world.effects), world.error) == (1, None)
    assert 8.0 < world.seconds < 9.0


@pytest.mark.parametrize(("config", "sends", "seconds"), [(CLIENT_CONFIG, 3, 24.0), (SINGLE_SEND_CONFIG, 1, 40.0)])
def test_a_call_without_any_answer_fails_after_as_many_sends_as_its_client_makes(
    world: World, config: Config, sends: int, seconds: float
) -> None:
    world.call(*["call-answer-late"] * sends, config=config)
    assert isinstance(world.error, ReadTimeoutError)
    assert len(world.effects) == sends
    assert seconds < world.seconds < seconds + 1.0


def test_the_error_of_a_second_send_says_that_it_is_one(world: World) -> None:
    def refuse_the_second() -> None:
        if len(world.effects) == 2:
            raise ClientError(
                {"Error": {"Code": "AccessDeniedException"}, "ResponseMetadata": {"HTTPStatusCode": 400}}, "-"
            )  # type: ignore[typeddict-item]

    world.call("call-answer-lost", "", effect=refuse_the_second)

    assert isinstance(world.error, ClientError)
    assert was_repeated(world.error)


def test_a_call_that_is_made_at_once_fails_for_good_by_a_draw_that_moves_no_other(world: World) -> None:
    world.runtime.chance.is_calm = False
    before = world.runtime.chance.stream("calls/reconcile").getstate()
    errors: list[BaseException | None] = []

    def body() -> None:
        world.calls.fail_by_chance("dynamodb", "load_open", 1.0, AWS_ERRORS)

    world.calls.fail_by_chance("dynamodb", "load_open", 1.0, AWS_ERRORS)
    world.runtime.start(Invocation(1, "reconcile"), body, lambda _answer, error: errors.append(error))

    assert [type(each) for each in errors] == [ClientError]
    assert len(world.calls.failed_at["dynamodb:load_open"]) == 1
    assert world.runtime.chance.stream("calls/reconcile").getstate() == before
