"""One session of boto3 for all accounts of tests/fakes/account_bed.py: its clients take long to make."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol

import boto3
from botocore.config import Config

from fakes.aws import REGION


class Answers(Protocol):
    """What is asked before moto."""

    def answer(self, model: Any, params: Mapping[str, Any]) -> Any:
        """Return the answer to a call, None to leave it to moto."""
        ...


class AccountSession:
    """A session of boto3 whose clients ask the bed of the test first."""

    region_name = REGION

    def __init__(self) -> None:
        self.bed: Answers | None = None
        self._session = boto3.Session(region_name=REGION)
        self._clients: dict[str, Any] = {}

    def client(self, service: str, *_: Any, **__: Any) -> Any:
        if service not in self._clients:
            make: Any = self._session.client
            client = make(service, config=Config(retries={"mode": "standard", "total_max_attempts": 1}))
            client.meta.events.register_first("before-call", self._answer)
            self._clients[service] = client
        return self._clients[service]

    def _answer(self, model: Any, params: Mapping[str, Any], **_: Any) -> Any:
        assert self.bed is not None
        return self.bed.answer(model, params)

    def get_available_regions(self, *_: Any) -> list[str]:
        return [REGION]


@cache
def shared_session() -> AccountSession:
    """Return the session that all accounts of a process share."""
    return AccountSession()
