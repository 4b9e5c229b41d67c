"""Quotas that the stack has not read yet, and the command has."""

import pytest

from fakes.builders import make_offering
from relaunch.core.offerings.snapshot import Origin, PriceOrigin, SnapshotPart
from relaunch.core.selection.selection import Selection
from relaunch_cli import exit_codes
from relaunch_cli.first_quotas import describe_shortage

G_SPOT = "L-3819A6DF"
G_ON_DEMAND = "L-DB2E81BA"
P_ON_DEMAND = "L-417A185B"


@pytest.fixture
def _new_account(session):
    session.account.vcpus = dict.fromkeys((G_SPOT, G_ON_DEMAND, P_ON_DEMAND), 0.0)


@pytest.mark.usefixtures("_new_account")
def test_a_quota_of_0_is_told_before_the_stack_has_read_it(relaunch, file):
    plan = relaunch("plan", "resnet")
    applied = relaunch("apply", str(file))
    document = relaunch("plan", "--gpu", "1", "--json").document["plans"][0]

    assert plan.exit_code == exit_codes.UNAVAILABLE
    assert "would wait: the account's quotas let nothing of it start: g4dn.xlarge has 4 vCPU, and" in plan.stdout
    assert f"({G_SPOT}) is 0; `relaunch doctor` says what to request" in plan.stdout
    # A definition may be registered before AWS has answered.
    assert applied.exit_code == exit_codes.OK
    assert "nothing before AWS grants a quota" in applied.stdout
    assert "resnet: the account's quotas let nothing of it start" in applied.stderr
    assert (document["is_satisfiable"], document["problem"][:22]) == (False, "the account's quotas l")


def test_several_nodes_need_the_vcpus_of_all_machines():
    selection = Selection((make_offering("g5.xlarge"),), (), ())

    assert describe_shortage(selection, {G_SPOT: 12.0}, 3) == ""
    assert "3 of g5.xlarge have 12 vCPU, and" in describe_shortage(selection, {G_SPOT: 11.0}, 3)


@pytest.mark.parametrize("vcpus", [{G_SPOT: 4.0}, {}], ids=["room in one of them", "they cannot be read"])
@pytest.mark.usefixtures("_new_account")
def test_one_offering_that_may_start_is_enough(relaunch, session, vcpus):
    session.account.vcpus = vcpus

    assert "would run on" in relaunch("plan", "resnet").stdout


@pytest.mark.usefixtures("_new_account")
def test_quotas_that_the_stack_knows_are_not_read_again(relaunch, session):
    origin = Origin("Service Quotas", session.clock.now())
    session.offerings.origins += (PriceOrigin(SnapshotPart.QUOTAS, origin),)

    assert "would run on" in relaunch("plan", "resnet").stdout
