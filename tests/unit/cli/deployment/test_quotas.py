"""Quotas of a new account: what is 0, what is requested, and what is told where that is not known."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from botocore.stub import Stubber

from fakes.aws import make_client
from relaunch.core.offerings.quotas import ALL_QUOTAS, QUOTA_CODES
from relaunch_cli.deployment.findings import QuotaState, blocked, request_command
from relaunch_cli.deployment.quotas import read_quotas, request_quotas

G_SPOT, G_ON_DEMAND, TRN_SPOT = "L-3819A6DF", "L-DB2E81BA", "L-6B0D517C"


@pytest.fixture
def stubber() -> Iterator[Stubber]:
    with Stubber(make_client("service-quotas")) as stubber:
        yield stubber


def answer_quotas(stubber: Stubber, **vcpus: float) -> None:
    by_code = {name.replace("_", "-"): value for name, value in vcpus.items()}
    for code in QUOTA_CODES:
        answer = {"Quota": {"QuotaCode": code, "Value": by_code.get(code, 0.0)}}
        stubber.add_response("get_service_quota", answer, {"ServiceCode": "ec2", "QuotaCode": code})


def answer_requests(stubber: Stubber, **vcpus: float) -> None:
    """Pending requests; those with a case open are none."""
    rows: list[Any] = [{"QuotaCode": k.replace("_", "-"), "DesiredValue": v} for k, v in vcpus.items()]
    for status, found in (("PENDING", rows), ("CASE_OPENED", [])):
        wanted = {"ServiceCode": "ec2", "Status": status}
        stubber.add_response("list_requested_service_quota_change_history", {"RequestedQuotas": found}, wanted)


def test_a_new_account_requests_the_family_of_a_first_training_only(stubber: Stubber) -> None:
    answer_quotas(stubber)
    answer_requests(stubber)
    state = read_quotas(stubber.client)

    assert {each.code for each in state.zero} == set(QUOTA_CODES)
    assert {each.code for each in state.to_request} == {G_SPOT, G_ON_DEMAND}


def test_what_is_requested_already_is_not_requested_again(stubber: Stubber) -> None:
    answer_quotas(stubber, L_DB2E81BA=32.0)
    answer_requests(stubber, L_3819A6DF=64.0)
    state = read_quotas(stubber.client)

    assert state.to_request == []
    first, others = blocked(state)
    assert first.endswith("0 vCPUs, 64 are requested")
    assert others.startswith("quotas of P, Trn, Inf are 0 too")
    (alone,) = blocked(replace(state, vcpus={**state.vcpus, G_SPOT: 8.0}))
    assert alone.startswith("quotas of P, Trn, Inf are 0:")


def test_a_refused_request_is_told_with_its_command_and_the_others_are_made(stubber: Stubber) -> None:
    answer_quotas(stubber)
    answer_requests(stubber)
    wanted = read_quotas(stubber.client).to_request
    stubber.add_client_error("request_service_quota_increase", "DependencyAccessDeniedException", "not you", 400)
    stubber.add_response("request_service_quota_increase", {"RequestedQuota": {"Id": "1"}})

    requests = request_quotas(wanted, stubber.client)

    (refused,) = requests.refused
    assert "could not be requested" in refused
    assert f"--quota-code {wanted[0].code} --desired-value 8" in refused
    assert requests.made == [wanted[1].code]


def test_quotas_that_may_not_be_read_are_not_known_and_not_requested(stubber: Stubber) -> None:
    stubber.add_client_error("get_service_quota", "AccessDeniedException", "not you", 400)
    state = read_quotas(stubber.client)

    assert state.unread == "the quotas of EC2 cannot be read (AWS denies GetServiceQuota: not you)"
    assert (state.zero, state.to_request, blocked(state)) == ([], [], [])


def test_a_local_world_without_quotas_is_no_matter(stubber: Stubber) -> None:
    stubber.add_client_error("get_service_quota", "UnknownOperationException", "not served here", 400)

    assert read_quotas(stubber.client) == QuotaState()


def test_a_request_is_for_the_smallest_machine_of_the_family() -> None:
    quota = next(each for each in ALL_QUOTAS if each.code == TRN_SPOT)

    assert request_command(quota).endswith(f"--quota-code {TRN_SPOT} --desired-value 128")
