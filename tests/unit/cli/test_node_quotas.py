"""What definitions of several nodes lack of the quotas that a deployment has read."""

from dataclasses import replace

import pytest

from fakes.builders import make_definition, make_offering
from fakes.cli_session import CliSession
from relaunch.ports import Dependencies, PermanentError
from relaunch_cli.deployment.findings import QuotaState
from relaunch_cli.node_quotas import missing_for_nodes

G_SPOT = "L-3819A6DF"


def deps_of(session: CliSession, nodes: int) -> Dependencies:
    """Return the dependencies of a stack with a definition of so many nodes, and g5.xlarge of its own on spot."""
    (active,) = session.deps.revisions.active
    session.deps.revisions.active[:] = [replace(active, network_mode="host")]
    own = make_offering(zone="us-east-1a", capacity_provider=None, is_own_machine=True)
    session.offerings.available = [own]
    session.register(make_definition(name="llama", nodes=nodes))
    return session.deps


def test_the_vcpus_of_all_machines_are_said_with_the_command_that_requests_them(session: CliSession) -> None:
    deps = deps_of(session, nodes=3)

    (line,) = missing_for_nodes(lambda: deps, QuotaState({G_SPOT: 8.0}))

    assert line.startswith(f"quota {G_SPOT}: 8 vCPUs of")
    assert "3 of g5.xlarge, the smallest machine of llama (spot), have 12: aws service-quotas request" in line
    assert line.endswith("--desired-value 12")


@pytest.mark.parametrize(
    ("nodes", "quotas"),
    [(3, QuotaState({G_SPOT: 12.0})), (1, QuotaState({G_SPOT: 0.0})), (3, QuotaState(unread="not allowed"))],
    ids=["there are enough", "one node each", "quotas are not known"],
)
def test_nothing_is_said_otherwise(session: CliSession, nodes: int, quotas: QuotaState) -> None:
    deps = deps_of(session, nodes)

    assert list(missing_for_nodes(lambda: deps, quotas)) == []


def test_what_cannot_be_read_ends_no_deployment() -> None:
    def load() -> Dependencies:
        raise PermanentError("the table cannot be read")

    assert list(missing_for_nodes(load, QuotaState({G_SPOT: 0.0}))) == []
