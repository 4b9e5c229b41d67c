from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from fakes.builders import NOW
from fakes.clock import FakeClock
from fakes.sources import ListLog
from relaunch.adapters.aws.service_quotas import MAX_AGE, PAUSE_AFTER_FAILURE, Ec2Quotas

G_SPOT, G_ON_DEMAND = "L-3819A6DF", "L-DB2E81BA"


@pytest.fixture
def client() -> Any:
    return boto3.client("service-quotas", "us-east-1", aws_access_key_id="testing", aws_secret_access_key="testing")


@pytest.fixture
def stubber(client: Any) -> Iterator[Stubber]:
    with Stubber(client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


def answer(stubber: Stubber, code: str, vcpus: float) -> None:
    asked = {"ServiceCode": "ec2", "QuotaCode": code}
    stubber.add_response("get_service_quota", {"Quota": {"QuotaCode": code, "Value": vcpus}}, asked)


def test_each_quota_is_asked_for_once_an_hour(client: Any, stubber: Stubber) -> None:
    for code, vcpus in ((G_SPOT, 64.0), (G_ON_DEMAND, 0.0), (G_SPOT, 128.0)):
        answer(stubber, code, vcpus)
    clock = FakeClock(NOW)
    quotas = Ec2Quotas(client, clock, ListLog())

    assert quotas.vcpu_quotas([G_ON_DEMAND, G_SPOT]) == {G_SPOT: 64.0, G_ON_DEMAND: 0.0}
    clock.advance(MAX_AGE - timedelta(seconds=1))
    assert quotas.vcpu_quotas([G_SPOT]) == {G_SPOT: 64.0}
    clock.advance(timedelta(seconds=1))
    assert quotas.vcpu_quotas([G_SPOT]) == {G_SPOT: 128.0}


def test_without_codes_nothing_is_asked(client: Any, stubber: Stubber) -> None:
    assert Ec2Quotas(client, FakeClock(), ListLog()).vcpu_quotas([]) == {}


def test_when_quotas_cannot_be_read_they_are_unknown_for_a_while(client: Any, stubber: Stubber) -> None:
    stubber.add_client_error("get_service_quota", "AccessDeniedException")
    answer(stubber, G_SPOT, 8.0)
    clock, log = FakeClock(NOW), ListLog()
    quotas = Ec2Quotas(client, clock, log)

    assert quotas.vcpu_quotas([G_SPOT, G_ON_DEMAND]) == {}
    assert log.decisions == ["quota-unknown"]
    clock.advance(PAUSE_AFTER_FAILURE)
    assert quotas.vcpu_quotas([G_SPOT]) == {G_SPOT: 8.0}


def test_a_quota_that_the_region_does_not_have_hides_no_other(client: Any, stubber: Stubber) -> None:
    stubber.add_client_error("get_service_quota", "NoSuchResourceException")
    answer(stubber, G_ON_DEMAND, 8.0)
    quotas = Ec2Quotas(client, FakeClock(NOW), ListLog())

    assert quotas.vcpu_quotas([G_SPOT, G_ON_DEMAND]) == {G_ON_DEMAND: 8.0}
    assert quotas.vcpu_quotas([G_SPOT]) == {}
