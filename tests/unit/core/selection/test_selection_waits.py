from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_capacity_failure, make_instance_type, make_offering_key
from relaunch.core.offerings.quotas import QuotaUsage
from relaunch.core.selection.offering_filters import SelectionLimits
from relaunch.core.selection.selection import explain_rejection, select
from unit.core.selection.offered import A10G, FOUR_A10G, ONE_GPU, REVISION, SPOT, T4, needing_gpu, offered, selected


def test_what_failed_lately_is_avoided_until_its_time_is_over():
    failure = make_capacity_failure(reason="interrupted")
    memory = {failure.offering: failure}
    spot, on_demand = offered(A10G, SPOT), offered(A10G)

    now = selected(ONE_GPU, spot, on_demand, memory=memory)
    later = select(ONE_GPU, REVISION, (spot,), memory, failure.until, SelectionLimits())

    assert now.kept == (on_demand,)
    assert "interrupted at 09:26 UTC; avoided until 09:56 UTC" in now.rejected[0].rejection.reason
    assert later.kept == (spot,)


def test_a_failure_without_a_zone_counts_for_every_zone_and_one_with_a_zone_only_there():
    anywhere = make_capacity_failure()
    here = make_capacity_failure(offering=make_offering_key(zone="us-east-1a"))
    zones = [offered(A10G, SPOT, zone=zone) for zone in ("us-east-1a", "us-east-1b")]

    assert not selected(ONE_GPU, *zones, memory={anywhere.offering: anywhere}).kept
    assert selected(ONE_GPU, *zones, memory={here.offering: here}).kept == (zones[1],)
    assert selected(ONE_GPU, offered(A10G, SPOT), memory={here.offering: here}).kept


def test_the_next_try_is_when_the_memory_first_lets_an_offering_go():
    soon = make_capacity_failure(until=NOW + timedelta(minutes=5))
    late = make_capacity_failure(offering=make_offering_key("g4dn.xlarge"))

    selection = selected(
        ONE_GPU, offered(A10G, SPOT), offered(T4, SPOT), memory={soon.offering: soon, late.offering: late}
    )

    assert (selection.retry_at, selection.is_permanent) == (soon.until, False)
    with_another = selected(ONE_GPU, offered(A10G, SPOT), offered(T4), memory={soon.offering: soon})
    assert (len(with_another.kept), len(with_another.rejected), with_another.retry_at) == (1, 1, None)
    assert selection.last_filter == "capacity-memory"


def test_one_offering_worth_waiting_for_keeps_a_job_waiting():
    failure = make_capacity_failure()

    selection = selected(
        needing_gpu(memory_mib=24 * 1024), offered(T4), offered(A10G, SPOT), memory={failure.offering: failure}
    )

    assert not selection.is_permanent
    assert explain_rejection(selection).startswith("nothing is available right now: capacity-memory removed the last")


def test_a_quota_smaller_than_the_machine_rejects_it_for_good_and_is_named():
    selection = selected(ONE_GPU, offered(FOUR_A10G, SPOT), quotas={"L-3819A6DF": QuotaUsage(32)})

    assert (selection.last_filter, selection.is_permanent) == ("quota", True)
    assert selection.rejected[0].rejection.reason == (
        "it has 48 vCPU and the account's quota is 32: ask AWS for more of "
        '"All G and VT Spot Instance Requests" (L-3819A6DF)'
    )


def test_a_quota_that_other_jobs_use_up_is_worth_waiting_for():
    full = {"L-3819A6DF": QuotaUsage(8, used_vcpus=6)}

    selection = selected(ONE_GPU, offered(A10G, SPOT), quotas=full)

    assert (selection.last_filter, selection.is_permanent) == ("quota", False)
    assert selection.retry_at == NOW + timedelta(minutes=5)
    assert "it has 4 vCPU and other jobs use 6 of the quota's 8" in selection.rejected[0].rejection.reason


@pytest.mark.parametrize(
    ("offering", "quotas"),
    [
        pytest.param(offered(A10G, SPOT), {}, id="unknown"),
        pytest.param(offered(A10G, SPOT), {"L-3819A6DF": QuotaUsage(4)}, id="just enough"),
        pytest.param(offered(A10G, SPOT), {"L-3819A6DF": QuotaUsage(8, 4)}, id="just enough beside others"),
        pytest.param(offered(A10G), {"L-3819A6DF": QuotaUsage(0)}, id="that of the other purchase option"),
        pytest.param(
            offered(FOUR_A10G, SPOT), {"L-3819A6DF": QuotaUsage(48, 48)}, id="used by machines with room for this task"
        ),
        pytest.param(
            offered(make_instance_type("x5.xlarge"), SPOT), {"L-3819A6DF": QuotaUsage(0)}, id="a family without one"
        ),
    ],
)
def test_a_quota_that_is_large_enough_or_unknown_rejects_nothing(offering, quotas):
    assert selected(ONE_GPU, offering, quotas=quotas).kept == (offering,)


@pytest.mark.parametrize("second_is_unready", [True, False])
def test_nothing_is_ready_anywhere_only_if_all_that_may_come_back_was_not(second_is_unready: bool):
    first = replace(make_capacity_failure(), is_unready=True)
    second = make_capacity_failure(offering=make_offering_key("g4dn.xlarge"))
    second = replace(second, is_unready=second_is_unready)
    memory = {each.offering: each for each in (first, second)}

    selection = selected(ONE_GPU, offered(A10G, SPOT), offered(T4, SPOT), memory=memory)

    assert selection.kept == ()
    assert selection.is_unready is second_is_unready
    assert not selected(ONE_GPU, offered(A10G, SPOT), memory={}).is_unready
