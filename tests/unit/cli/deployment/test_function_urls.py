"""A region in which the application cannot be deployed is refused before anything is made there."""

import pytest

from relaunch_cli.deployment.refusals import RefusedError
from unit.cli.deployment import test_deployment

account = test_deployment.account


def test_a_region_that_would_refuse_the_application_is_told_before_anything_is_made(
    account: test_deployment.FakeAccount,
) -> None:
    account.region = "eu-central-2"
    with pytest.raises(RefusedError, match=r"no function URLs in eu-central-2.*AWS_REGION=eu-central-1"):
        account.deploy()

    assert (account.log, account.stacks.stacks, account.quotas.requested) == ([], {}, [])
