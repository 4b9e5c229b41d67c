"""Prices and quotas of the region are read at once after a first deployment."""

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from fakes.aws import refusal
from relaunch_cli.deployment.findings import Stack
from relaunch_cli.deployment.first_refresh import start_first_refresh

STACK = Stack("relaunch", "CREATE_COMPLETE", outputs={"RefreshOfferingsFunctionName": "refresh"})


class FakeFunctions:
    """Lambda, which fails with `error` if there is one."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.invoked: list[dict[str, str]] = []

    def invoke(self, **request: str) -> None:
        if self.error is not None:
            raise self.error
        self.invoked.append(request)


@pytest.mark.parametrize("stack", [STACK, Stack("relaunch", "CREATE_COMPLETE"), None])
def test_the_first_refresh_is_started_where_the_stack_names_its_function(stack: Stack | None) -> None:
    functions = FakeFunctions()
    lines: list[str] = []

    start_first_refresh(stack, functions, lines.append)

    started = [{"FunctionName": "refresh", "InvocationType": "Event"}] if stack is STACK else []
    assert (functions.invoked, lines) == (started, [])


@pytest.mark.parametrize(
    "error", [refusal("AccessDeniedException"), EndpointConnectionError(endpoint_url="https://lambda")]
)
def test_a_deployment_has_succeeded_though_its_refresh_comes_an_hour_later(error: ClientError) -> None:
    lines: list[str] = []

    start_first_refresh(STACK, FakeFunctions(error), lines.append)

    assert [each.partition(";")[0] for each in lines] == ["prices and quotas are read within an hour"]
