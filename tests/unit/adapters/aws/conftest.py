from collections.abc import Iterator

import pytest
from botocore.stub import Stubber

from fakes.aws import aws_in_process, make_client


@pytest.fixture(scope="module")
def aws() -> Iterator[None]:
    with aws_in_process():
        yield


@pytest.fixture
def stubber(request: pytest.FixtureRequest) -> Iterator[Stubber]:
    """The stubber of a client of the module's SERVICE: each answer that a test gives has to be asked for."""
    with Stubber(make_client(request.module.SERVICE)) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()
