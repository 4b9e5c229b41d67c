"""GitHub's REST API of webhooks and their deliveries, with a token that a person stored.

"REST API endpoints for repository webhooks" and "… for organization webhooks", GitHub Docs.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from relaunch.adapters.github.rest_api import GithubRestApi, RestAnswer
from relaunch.adapters.validation import Timestamp, describe_errors
from relaunch.core.triggers.failed_deliveries import DeliveryAttempt
from relaunch.ports import NotGrantedError, PermanentError, TransientError
from relaunch.ports.deliveries import AttemptPage, TokenRefusedError

_PAGE = 100
_NEXT = re.compile(r'<([^>]*)>\s*;[^,]*\brel="?next"?')


class _Delivery(BaseModel, defer_build=True):
    """An attempt as it is listed; without an answer GitHub writes 0 or nothing for `status_code`."""

    id: int
    guid: str
    delivered_at: Timestamp
    status_code: int | None = None


class _HookConfig(BaseModel, defer_build=True):
    url: str = ""


class _Hook(BaseModel, defer_build=True):
    id: int
    active: bool = True
    config: _HookConfig = Field(default_factory=_HookConfig)


_DELIVERIES = TypeAdapter(list[_Delivery])
_HOOKS = TypeAdapter(list[_Hook])


class GithubWebhookApi:
    """Implements WebhookApi.

    `api_url` is https://api.github.com, or https://HOST/api/v3 of a GitHub Enterprise Server. `webhook_urls` are those
    that deliveries to this stack are sent to, or below them. `read_token` is called as GithubRestApi calls it.
    """

    def __init__(self, api_url: str, webhook_urls: Sequence[str], read_token: Callable[[], str]) -> None:
        self._api = GithubRestApi(api_url, read_token, "GithubTokenSecretArn")
        self._webhook_urls = tuple(each.rstrip("/") for each in webhook_urls if each)

    def find_webhooks(self, owner: str) -> Sequence[str]:
        doing = f"listing the webhooks of {owner}"
        answer = self._call("GET", f"{owner}/hooks?per_page={_PAGE}", doing)
        hooks: list[_Hook] = _read(_HOOKS, answer.content, doing)
        return [f"{owner}/hooks/{each.id}" for each in hooks if each.active and self._is_ours(each.config.url)]

    def _is_ours(self, url: str) -> bool:
        return any(url == each or url.startswith(f"{each}/") for each in self._webhook_urls)

    def list_attempts(self, webhook: str, cursor: str) -> AttemptPage:
        doing = f"listing the deliveries of {webhook}"
        more = f"&cursor={quote(cursor, safe='')}" if cursor else ""
        answer = self._call("GET", f"{webhook}/deliveries?per_page={_PAGE}{more}", doing)
        deliveries: list[_Delivery] = _read(_DELIVERIES, answer.content, doing)
        attempts = [
            DeliveryAttempt(each.id, each.guid, each.delivered_at, each.status_code or 0) for each in deliveries
        ]
        return AttemptPage(attempts, _find_cursor(answer.headers.get("Link", "")))

    def redeliver(self, webhook: str, attempt_id: int) -> None:
        path = f"{webhook}/deliveries/{attempt_id}/attempts"
        self._call("POST", path, f"redelivering {attempt_id} of {webhook}")

    def _call(self, method: str, path: str, doing: str) -> RestAnswer:
        answer = self._api.send(method, path, doing)
        if not answer.is_taken:
            raise _to_port_error(doing, answer)
        return answer


def _to_port_error(doing: str, answer: RestAnswer) -> Exception:
    """Return the error of the port for an answer other than 2xx."""
    text = f"{doing}: HTTP {answer.status} {answer.message}".rstrip()
    if answer.may_pass:
        return TransientError(text)
    if answer.status == 401:
        return TokenRefusedError(f"{text}: GitHub does not accept the token: store another one")
    if answer.status in (403, 404):
        return NotGrantedError(f"{text}: the token does not reach its webhooks for reading and writing, or it is gone")
    if 300 <= answer.status < 400:
        return NotGrantedError(f"{text}: it has another name or address now")
    return PermanentError(text)


def _read(model: Any, content: bytes, doing: str) -> Any:
    try:
        return model.validate_json(content)
    except ValidationError as error:
        raise TransientError(f"{doing}: the answer is malformed: {describe_errors(error)}") from None


def _find_cursor(link: str) -> str:
    """Return the cursor of the next page in a Link header ("Using pagination in the REST API"), empty without one."""
    found = _NEXT.search(link)
    return parse_qs(urlsplit(found[1]).query).get("cursor", [""])[0] if found else ""
