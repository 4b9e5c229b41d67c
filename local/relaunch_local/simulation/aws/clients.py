"""boto3-like clients over other clients: each method is a call that may fail."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from botocore.config import Config
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

from relaunch.adapters.aws.client_config import CLIENT_CONFIG
from relaunch_local.ecs import EcsError
from relaunch_local.ecs.api.in_process import client_error_of
from relaunch_local.simulation.aws.calls import CallErrors, Calls
from relaunch_local.simulation.aws.pages import tokens_of


def client_error(code: str, name: str) -> Exception:
    """Return the error with which a service answers an action."""
    return client_error_of(EcsError(code, f"injected into {name}"), name)


def timed_out(name: str) -> Exception:
    """Return the error of a call without an answer."""
    return ReadTimeoutError(endpoint_url=name)


def disconnected(name: str) -> Exception:
    """Return the error of a call whose connection ended before its answer."""
    return ConnectionClosedError(endpoint_url=name)


AWS_ERRORS = CallErrors(
    refused=partial(client_error, "ServerException"),
    throttled=partial(client_error, "ThrottlingException"),
    unanswered=timed_out,
    disconnected=disconnected,
    denied=partial(client_error, "AccessDeniedException"),
)


@dataclass(frozen=True, slots=True)
class CallingClient:
    """Delegates each method to another client as a call that may fail."""

    _service: str
    _client: Any
    _calls: Calls
    _errors: CallErrors = AWS_ERRORS
    _config: Config = CLIENT_CONFIG
    on_answer: Callable[[str, Any], None] = lambda _name, _answer: None
    """Called with the action and the answer that the caller gets."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return the method of an action."""
        method = getattr(self._client, name)

        def call(**parameters: Any) -> Any:
            answer = self._calls.perform(self._service, name, lambda: method(**parameters), self._errors, self._config)
            self.on_answer(name, answer)
            return answer

        return call

    def get_paginator(self, name: str) -> "_Paginator":
        """Return a paginator over a method: each page is a call of its own."""
        return _Paginator(getattr(self, name), *tokens_of(name))


@dataclass(frozen=True, slots=True)
class _Paginator:
    call: Callable[..., Any]
    sent: str
    answered: str

    def paginate(self, **parameters: Any) -> Iterator[Any]:
        parameters.pop("PaginationConfig", None)
        token = None
        while True:
            page = self.call(**parameters, **({self.sent: token} if token else {}))
            yield page
            token = page.get(self.answered)
            if not token:
                return
