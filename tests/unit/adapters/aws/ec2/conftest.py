from collections.abc import Iterator
from typing import Any

import pytest
from botocore.stub import Stubber

from fakes.aws import make_client


@pytest.fixture(scope="module")
def client(request: pytest.FixtureRequest) -> Any:
    """The client of a module's tests: to make one of EC2 takes longer than a test."""
    return make_client(request.module.SERVICE)


@pytest.fixture
def stubber(client: Any) -> Iterator[Stubber]:
    """The stubber of the module's client: each answer that a test gives has to be asked for."""
    with Stubber(client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()
