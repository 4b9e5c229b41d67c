import io
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from relaunch_local.demo.interruption import interrupt, terminate
from relaunch_local.demo.recorder import Recorder
from relaunch_local.demo.screen import Screen
from relaunch_local.demo.session import Session, UnmetExpectationError
from relaunch_local.ecs.clock import Clock


@pytest.mark.parametrize("take_away", [interrupt, terminate])
def test_the_machine_of_a_task_that_has_ended_is_left_alone_and_its_end_is_said(
    take_away: Callable[..., object],
) -> None:
    # A simulator that has no method that takes a machine away.
    local: Any = SimpleNamespace(simulator=SimpleNamespace(clock=Clock()))
    connection: Any = None
    outside: Any = None
    session = Session(local, connection, Screen(Console(file=io.StringIO())), Recorder(list), 0.0, outside)
    for status in ("RUNNING", "STOPPED"):
        event = {"source": "aws.ecs", "detail": {"startedBy": "demo-1/1", "lastStatus": status}}
        session.recorder.events.append(event)

    with pytest.raises(UnmetExpectationError, match="runs until something happens to it, but it is STOPPED before"):
        take_away(session, "demo-1", "i-1")

    assert session.recorder.actions == []
