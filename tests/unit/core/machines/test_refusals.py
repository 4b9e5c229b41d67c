from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.builders import NOW
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.events import FleetRefused, InstanceLaunched, Refusal, RefusalKind
from relaunch.core.machines.machine import FleetOverride, FleetRequest, Resources
from relaunch.core.machines.refusals import Consequence, Verdict, delay_before, find_failures, judge
from relaunch.core.offerings.capacity_memory import is_scope
from relaunch.core.offerings.offering import CapacityFailure, OfferingKey

ON_DEMAND, SPOT = PurchaseOption.ON_DEMAND, PurchaseOption.SPOT
A, B = "us-east-1a", "us-east-1b"
G5_A, G5_B = OfferingKey("g5.xlarge", A, SPOT), OfferingKey("g5.xlarge", B, SPOT)
G6_A = OfferingKey("g6.12xlarge", A, SPOT)
P6_B = OfferingKey("p6-b200.48xlarge", B, SPOT)
VCPUS = {"g5.xlarge": 4, "g6.12xlarge": 48, "p6-b200.48xlarge": 192}
NEVER_DARK = (
    RefusalKind.THROTTLED,
    RefusalKind.NOT_PERMITTED,
    RefusalKind.CONFIGURATION,
    RefusalKind.ACCOUNT_LIMIT,
)
MINUTE = timedelta(minutes=1)


def request_for(*keys: OfferingKey) -> FleetRequest:
    overrides = tuple(FleetOverride(key, "subnet-1", 1.0, Resources(VCPUS[key.instance_type] * 1024)) for key in keys)
    return FleetRequest("relaunch-m-1", keys[0].purchase, "lt-1", "7", overrides)


ASKED = request_for(G5_A, G5_B, G6_A)


def refusal(kind: RefusalKind, offering: OfferingKey | None = None, code: str = "Code", message: str = "") -> Refusal:
    return Refusal(kind, code, message, offering)


def dark(failures: Iterable[CapacityFailure]) -> dict[str, float]:
    """Return for how many minutes what is avoided."""
    return {str(each.offering): (each.until - each.at) / MINUTE for each in failures}


@pytest.mark.parametrize(
    ("refused", "avoided"),
    [
        pytest.param(refusal(RefusalKind.NO_CAPACITY, G5_A), {"g5.xlarge spot us-east-1a": 3}, id="no stock"),
        pytest.param(refusal(RefusalKind.UNSUPPORTED, G6_A), {"g6.12xlarge spot us-east-1a": 3}, id="not offered"),
        pytest.param(refusal(RefusalKind.PRICE, G5_A), {"g5.xlarge spot us-east-1a": 3}, id="price"),
        pytest.param(refusal(RefusalKind.UNKNOWN, G5_A), {"g5.xlarge spot us-east-1a": 3}, id="an unknown code"),
        pytest.param(
            refusal(RefusalKind.NO_CAPACITY),
            {"g5.xlarge spot us-east-1a": 3, "g5.xlarge spot us-east-1b": 3, "g6.12xlarge spot us-east-1a": 3},
            id="no echo: all of the request",
        ),
        pytest.param(
            refusal(RefusalKind.NO_CAPACITY, replace(G5_A, zone=None)),
            {"g5.xlarge spot us-east-1a": 3, "g5.xlarge spot us-east-1b": 3},
            id="an echo without a zone",
        ),
        pytest.param(
            refusal(RefusalKind.NO_CAPACITY, P6_B),
            {"g5.xlarge spot us-east-1a": 3, "g5.xlarge spot us-east-1b": 3, "g6.12xlarge spot us-east-1a": 3},
            id="an echo of something else: all of the request, else it would be repeated",
        ),
        pytest.param(refusal(RefusalKind.QUOTA, G6_A), {"quota:L-3819A6DF spot": 15}, id="a quota"),
        pytest.param(
            refusal(RefusalKind.SUBNET_FULL, G5_B),
            {"any-type spot us-east-1b": 10, "any-type on-demand us-east-1b": 10},
            id="a subnet, for both purchase options",
        ),
        pytest.param(refusal(RefusalKind.NO_SPOT_ROLE), {"any-type spot": 30}, id="no role for spot"),
        *(pytest.param(refusal(kind, G5_A), {}, id=f"{kind}: nothing") for kind in NEVER_DARK),
    ],
)
def test_a_refusal_darkens_what_it_is_about(refused: Refusal, avoided: dict[str, float]) -> None:
    assert dark(find_failures(ASKED, FleetRefused((refused,)), NOW)) == avoided


@pytest.mark.parametrize("kind", RefusalKind)
def test_only_a_lack_of_capacity_is_a_shortage_for_whoever_asks(kind: RefusalKind) -> None:
    failures = find_failures(ASKED, FleetRefused((refusal(kind, G5_A),)), NOW)

    assert [each.is_shortage for each in failures] == [kind is RefusalKind.NO_CAPACITY] * len(failures)


def test_silence_is_no_shortage_for_whoever_asks() -> None:
    (failure,) = find_failures(request_for(G5_A), FleetRefused(()), NOW)

    assert not failure.is_shortage


def test_a_permission_beside_a_lack_of_capacity_darkens_what_lacks_capacity_only() -> None:
    refusals = (refusal(RefusalKind.NOT_PERMITTED), refusal(RefusalKind.NO_CAPACITY, G6_A))

    assert dark(find_failures(ASKED, FleetRefused(refusals), NOW)) == {"g6.12xlarge spot us-east-1a": 3}


def test_neither_instance_nor_error_is_like_a_lack_of_capacity() -> None:
    failures = find_failures(request_for(G5_A), FleetRefused(()), NOW)

    assert dark(failures) == {"g5.xlarge spot us-east-1a": 3}
    assert failures[0].reason == "EC2 has no capacity for it (no instance and no error)"
    assert judge(request_for(G5_A), ()).consequence is Consequence.NEXT


@pytest.mark.parametrize(
    ("refusals", "avoided"),
    [
        pytest.param((), {}, id="nothing was refused"),
        pytest.param((refusal(RefusalKind.NO_CAPACITY),), {}, id="it is not known what"),
        pytest.param((refusal(RefusalKind.NO_CAPACITY, P6_B),), {}, id="something else"),
        pytest.param((refusal(RefusalKind.NO_CAPACITY, G5_A),), {}, id="what was launched after all"),
        pytest.param((refusal(RefusalKind.NO_SPOT_ROLE),), {}, id="spot, which there is"),
        pytest.param(
            (refusal(RefusalKind.NO_CAPACITY, G5_B),), {"g5.xlarge spot us-east-1b": 3}, id="another offering"
        ),
        pytest.param((refusal(RefusalKind.QUOTA, G6_A),), {"quota:L-3819A6DF spot": 15}, id="a larger type"),
    ],
)
def test_an_instance_was_launched_although_others_were_refused(refusals, avoided) -> None:
    launched = InstanceLaunched("i-1", G5_A, refusals)

    assert dark(find_failures(ASKED, launched, NOW)) == avoided


def test_a_quota_is_avoided_from_the_smallest_refused_type_on() -> None:
    large = find_failures(ASKED, FleetRefused((refusal(RefusalKind.QUOTA, G6_A),)), NOW)
    both = find_failures(ASKED, FleetRefused((refusal(RefusalKind.QUOTA),)), NOW)

    assert [each.vcpus for each in large] == [48]
    assert [each.vcpus for each in both] == [4]


def test_a_quota_that_is_not_known_is_that_of_the_family() -> None:
    asked = request_for(P6_B, G5_B)

    failures = find_failures(asked, FleetRefused((refusal(RefusalKind.QUOTA, code="Max"),)), NOW)

    assert dark(failures) == {"family:p6-b200 spot": 15, "quota:L-3819A6DF spot": 15}
    assert [each.reason for each in failures] == [
        "the account's vCPU quota for p6-b200 spot is used up (Max): ask AWS for more of it",
        'the account\'s quota "All G and VT Spot Instance Requests" (L-3819A6DF) is used up (Max): ask for more, by '
        "`aws service-quotas request-service-quota-increase --service-code ec2 --quota-code L-3819A6DF "
        "--desired-value <vCPUs>`",
    ]


QUOTA = "MaxSpotInstanceCountExceeded"
SPOT_ROLE_TEXT = (
    "the account has no service-linked role for spot: create it once, by "
    "`aws iam create-service-linked-role --aws-service-name spot.amazonaws.com`"
)
NEXT, AGAIN, PAUSE = Consequence.NEXT, Consequence.AGAIN, Consequence.PAUSE


@pytest.mark.parametrize(
    ("refusals", "verdict"),
    [
        pytest.param(
            [refusal(RefusalKind.NO_CAPACITY, G5_A, "Stock"), refusal(RefusalKind.NO_CAPACITY, G6_A, "Stock")],
            Verdict(NEXT, "EC2 has no capacity for it (Stock): g5.xlarge spot us-east-1a, g6.12xlarge spot us-east-1a"),
            id="no stock",
        ),
        pytest.param(
            [refusal(RefusalKind.UNSUPPORTED, code="Unsupported")],
            Verdict(
                NEXT,
                "EC2 does not offer it in this zone now (Unsupported): g5.xlarge spot us-east-1a, "
                "g5.xlarge spot us-east-1b, g6.12xlarge spot us-east-1a",
                is_alert=True,
            ),
            id="offered in none of the zones",
        ),
        pytest.param(
            [refusal(RefusalKind.UNSUPPORTED, G5_A), refusal(RefusalKind.NO_CAPACITY, G6_A)],
            Verdict(
                NEXT,
                "EC2 does not offer it in this zone now (Code): g5.xlarge spot us-east-1a; "
                "EC2 has no capacity for it (Code): g6.12xlarge spot us-east-1a",
            ),
            id="offered in some of the zones",
        ),
        pytest.param(
            [refusal(RefusalKind.UNKNOWN, G5_A, "Strange")],
            Verdict(
                NEXT,
                "EC2 refuses it, by a code that is not known here (Strange): g5.xlarge spot us-east-1a",
                is_alert=True,
            ),
            id="an unknown code",
        ),
        pytest.param(
            [refusal(RefusalKind.SUBNET_FULL, G5_A)],
            Verdict(
                NEXT,
                "the subnet of us-east-1a has no free address (Code): free some, or name a larger one (MachineSubnets)",
                is_alert=True,
            ),
            id="a full subnet",
        ),
        pytest.param([refusal(RefusalKind.NO_SPOT_ROLE)], Verdict(NEXT, SPOT_ROLE_TEXT, is_alert=True), id="no role"),
        pytest.param(
            [refusal(RefusalKind.THROTTLED, code="RequestLimitExceeded"), refusal(RefusalKind.PRICE, G5_A)],
            Verdict(
                AGAIN,
                "EC2 takes no more requests now (RequestLimitExceeded); "
                "EC2 does not sell it at the price, or from the reservation (Code): g5.xlarge spot us-east-1a",
            ),
            id="throttled",
        ),
        pytest.param(
            [refusal(RefusalKind.NO_CAPACITY, G5_A), refusal(RefusalKind.NOT_PERMITTED, None, "Unauth", "m" * 999)],
            Verdict(
                PAUSE,
                "EC2 has no capacity for it (Code): g5.xlarge spot us-east-1a; a permission is missing: grant it to "
                f"the role of the function request_machine, as template.yaml does (Unauth: {'m' * 200})",
                is_alert=True,
            ),
            id="a permission, beside a lack of stock",
        ),
        pytest.param(
            [refusal(RefusalKind.CONFIGURATION), refusal(RefusalKind.THROTTLED)],
            Verdict(
                PAUSE,
                "the launch template, a subnet or the request is wrong: check MachineLaunchTemplates and "
                "MachineSubnets (Code); EC2 takes no more requests now (Code)",
                is_alert=True,
            ),
            id="a wrong template",
        ),
        pytest.param(
            [refusal(RefusalKind.ACCOUNT_LIMIT)],
            Verdict(
                PAUSE,
                "a limit of the account, or its state, stops all requests: see Service Quotas, mail from AWS, and "
                "whether it is on AWS's Free plan, which has no accelerators (Code)",
                is_alert=True,
            ),
            id="a limit of the account",
        ),
    ],
)
def test_the_job_goes_on_or_waits_and_is_told_what_to_do(refusals, verdict) -> None:
    assert judge(ASKED, refusals) == verdict


def test_a_quota_is_named_and_needs_no_alert() -> None:
    verdict = judge(ASKED, [refusal(RefusalKind.QUOTA, G5_A, QUOTA)])

    assert (verdict.consequence, verdict.is_alert) == (NEXT, False)
    assert "(L-3819A6DF) is used up (MaxSpotInstanceCountExceeded)" in verdict.reason


def test_of_many_offerings_some_are_named_and_the_others_counted() -> None:
    asked = request_for(G5_A, G5_B, G6_A, P6_B, replace(P6_B, zone=A))

    reason = judge(asked, [refusal(RefusalKind.NO_CAPACITY)]).reason

    assert reason.endswith(
        "g5.xlarge spot us-east-1a, g5.xlarge spot us-east-1b, g6.12xlarge spot us-east-1a and 2 more"
    )


@pytest.mark.parametrize(
    ("consequence", "waited", "least", "most"),
    [
        pytest.param(NEXT, timedelta(hours=1), 0, 0, id="at once"),
        pytest.param(AGAIN, timedelta(0), 2, 6, id="throttled: some seconds"),
        pytest.param(AGAIN, timedelta(seconds=20), 10, 30, id="throttled for 20 seconds"),
        pytest.param(AGAIN, timedelta(hours=1), 30, 90, id="throttled for long"),
        pytest.param(PAUSE, timedelta(0), 30, 90, id="paused"),
        pytest.param(PAUSE, timedelta(minutes=10), 300, 900, id="paused for ten minutes"),
        pytest.param(PAUSE, timedelta(days=2), 300, 900, id="paused for long"),
    ],
)
def test_the_delay_grows_with_the_wait_and_spreads_the_jobs(consequence, waited, least, most) -> None:
    delays = {delay_before(consequence, waited, f"job-{number}").total_seconds() for number in range(100)}

    assert least <= min(delays) <= max(delays) <= most
    assert delay_before(consequence, waited, "job-1") == delay_before(consequence, waited, "job-1")
    assert len(delays) >= min(most - least, 10)


echoes = st.sampled_from((None, G5_A, G5_B, G6_A, P6_B))
kinds = st.sampled_from(RefusalKind)
refusals = st.lists(st.builds(Refusal, kinds, st.sampled_from(("Code", "Other")), st.just(""), echoes), max_size=6)


@given(refusals)
def test_after_a_refusal_the_same_request_is_never_repeated_at_once(given_refusals) -> None:
    failures = find_failures(ASKED, FleetRefused(tuple(given_refusals)), NOW)

    assert len({each.offering for each in failures}) == len(failures)
    assert all(each.at == NOW < each.until and each.reason for each in failures)
    if judge(ASKED, given_refusals).consequence is NEXT:
        assert failures


@given(refusals, st.sampled_from((G5_A, G5_B, G6_A)))
def test_what_was_launched_is_never_avoided(given_refusals, launched) -> None:
    failures = find_failures(ASKED, InstanceLaunched("i-1", launched, tuple(given_refusals)), NOW)

    assert launched not in {each.offering for each in failures}
    assert {each.offering for each in failures if not is_scope(each.offering)} <= {
        each.offering for each in ASKED.overrides
    }


@given(st.lists(st.builds(Refusal, st.sampled_from(NEVER_DARK), st.just("Code"), st.just(""), echoes), min_size=1))
def test_what_says_nothing_of_capacity_is_not_remembered(given_refusals) -> None:
    assert find_failures(ASKED, FleetRefused(tuple(given_refusals)), NOW) == ()
    assert judge(ASKED, given_refusals).consequence is not NEXT
