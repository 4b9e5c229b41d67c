import pytest
from botocore.stub import Stubber

from relaunch.adapters.aws.service_quotas import Ec2Quotas
from relaunch.ports import PermanentError, TransientError

SERVICE = "service-quotas"
G_SPOT, G_ON_DEMAND = "L-3819A6DF", "L-DB2E81BA"


def answer(stubber: Stubber, code: str, vcpus: float) -> None:
    asked = {"ServiceCode": "ec2", "QuotaCode": code}
    stubber.add_response("get_service_quota", {"Quota": {"QuotaCode": code, "Value": vcpus}}, asked)


def test_each_quota_is_read_by_its_code_also_one_of_nothing(stubber: Stubber) -> None:
    answer(stubber, G_SPOT, 64.0)
    answer(stubber, G_ON_DEMAND, 0.0)

    assert Ec2Quotas(stubber.client).vcpu_quotas([G_SPOT, G_ON_DEMAND]) == {G_SPOT: 64.0, G_ON_DEMAND: 0.0}


def test_a_quota_that_the_region_does_not_have_hides_no_other(stubber: Stubber) -> None:
    stubber.add_client_error("get_service_quota", "NoSuchResourceException")
    answer(stubber, G_ON_DEMAND, 8.0)

    assert Ec2Quotas(stubber.client).vcpu_quotas([G_SPOT, G_ON_DEMAND]) == {G_ON_DEMAND: 8.0}


@pytest.mark.parametrize(
    ("code", "error"), [("AccessDeniedException", PermanentError), ("TooManyRequestsException", TransientError)]
)
def test_quotas_that_cannot_be_read_are_an_error(stubber: Stubber, code: str, error: type[Exception]) -> None:
    stubber.add_client_error("get_service_quota", code)

    with pytest.raises(error, match=f"reading the account's quotas.*{code}"):
        Ec2Quotas(stubber.client).vcpu_quotas([G_SPOT, G_ON_DEMAND])
