"""What starts jobs is closed by a removal, and opened by a deployment that comes after one that was ended half-way."""

from typing import Any

import pytest

from fakes.receivers import FakeReceivers
from relaunch_cli.deployment.receivers import open_receivers
from relaunch_cli.deployment.uninstallation import Uninstallation


def closed_by_a_removal(**words: Any) -> FakeReceivers:
    functions = FakeReceivers(**words)
    functions.reserved = {"relaunch-GithubWebhookFunction": 20}
    lines: list[str] = []
    Uninstallation("relaunch", lambda _service: functions, lines.append, lambda _seconds: None).close()
    assert lines == ["no event starts a job any more; `relaunch deploy` changes that again"]
    return functions


def test_a_stack_without_a_webhook_is_closed_too() -> None:
    functions = closed_by_a_removal(missing=("GithubWebhookFunction",))

    assert functions.reserved["relaunch-JobApiFunction"] == functions.reserved["relaunch-SubmitJobFunction"] == 0


@pytest.mark.parametrize("webhook", [20, 0])
def test_a_deployment_opens_what_a_removal_has_closed(webhook: int) -> None:
    functions = closed_by_a_removal()
    assert set(functions.reserved.values()) == {0}
    lines: list[str] = []

    open_receivers("relaunch", {"GithubWebhookFunction": webhook}, functions, functions, lines.append)

    assert functions.reserved == ({"relaunch-GithubWebhookFunction": webhook} if webhook else {})
    assert [each.split()[1].rstrip(",") for each in lines] == [
        *("GithubWebhookFunction", "JobApiFunction", "SubmitJobFunction")
    ]


def test_a_deployment_opens_what_answers_spot_warnings_too() -> None:
    functions = FakeReceivers()
    functions.reserved = {"relaunch-ObserveCapacityFunction": 0}

    open_receivers("relaunch", {"ObserveCapacityFunction": 10}, functions, functions, lambda _line: None)

    assert functions.reserved == {"relaunch-ObserveCapacityFunction": 10}


def test_what_runs_is_left_as_it_is() -> None:
    functions = FakeReceivers()
    functions.reserved = {"relaunch-JobApiFunction": 3}

    open_receivers("relaunch", {"GithubWebhookFunction": 20}, functions, functions, pytest.fail)

    assert functions.reserved == {"relaunch-JobApiFunction": 3}


def test_what_cannot_be_read_is_said_and_fails_no_deployment() -> None:
    lines: list[str] = []
    open_receivers("relaunch", {}, FakeReceivers("AccessDenied"), FakeReceivers("AccessDenied"), lines.append)

    assert "AccessDenied" in lines[0]
    assert "relaunch doctor" in lines[0]
