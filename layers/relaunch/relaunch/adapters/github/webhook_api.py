"""GitHub's REST API of webhooks and their deliveries, with a token that a person stored.

"REST API endpoints for repository webhooks" and "… for organization webhooks", "Rate limits for the REST API" and
"Best practices for using the REST API", GitHub Docs. Redirects, as of a repository that was renamed, are not followed:
the token goes to no other host.
"""

import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from email.message import Message
from typing import IO, Any
from urllib.parse import parse_qs, quote, urlsplit

from pydantic import BaseModel, TypeAdapter, ValidationError

from relaunch.adapters.validation import Timestamp, describe_errors
from relaunch.core.triggers.failed_deliveries import DeliveryAttempt
from relaunch.ports import NotGrantedError, PermanentError, TransientError
from relaunch.ports.deliveries import AttemptPage, TokenRefusedError

_TIMEOUT_SECONDS = 10
_PAGE = 100
# A page of deliveries is some 40 KB.
_MAX_BYTES = 4 << 20
_MAX_MESSAGE = 200
_NEXT = re.compile(r'<([^>]*)>\s*;[^,]*\brel="?next"?')


class _Delivery(BaseModel):
    """An attempt as it is listed; without an answer GitHub writes 0 or nothing for `status_code`."""

    id: int
    guid: str
    delivered_at: Timestamp
    status_code: int | None = None


class _HookConfig(BaseModel):
    url: str = ""


class _Hook(BaseModel):
    id: int
    active: bool = True
    config: _HookConfig = _HookConfig()


_DELIVERIES = TypeAdapter(list[_Delivery])
_HOOKS = TypeAdapter(list[_Hook])


class _Unfollowed(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        """Follow no redirect: urllib would send the token along, to whatever host."""
        del req, fp, code, msg, headers, newurl


class GithubWebhookApi:
    """Implements WebhookApi.

    `api_url` is https://api.github.com, or https://HOST/api/v3 of a GitHub Enterprise Server. `webhook_urls` are those
    that deliveries to this stack are sent to, or below them. `read_token` is called once, before the first call.
    """

    def __init__(self, api_url: str, webhook_urls: Sequence[str], read_token: Callable[[], str]) -> None:
        self._api_url = api_url.rstrip("/")
        self._webhook_urls = tuple(each.rstrip("/") for each in webhook_urls if each)
        self._read_token = read_token
        self._token = ""
        self._opener = urllib.request.build_opener(_Unfollowed())

    def find_webhooks(self, owner: str) -> Sequence[str]:
        doing = f"listing the webhooks of {owner}"
        content, _ = self._call("GET", f"{owner}/hooks?per_page={_PAGE}", doing)
        hooks: list[_Hook] = _read(_HOOKS, content, doing)
        return [f"{owner}/hooks/{each.id}" for each in hooks if each.active and self._is_ours(each.config.url)]

    def _is_ours(self, url: str) -> bool:
        return any(url == each or url.startswith(f"{each}/") for each in self._webhook_urls)

    def list_attempts(self, webhook: str, cursor: str) -> AttemptPage:
        doing = f"listing the deliveries of {webhook}"
        more = f"&cursor={quote(cursor, safe='')}" if cursor else ""
        content, headers = self._call("GET", f"{webhook}/deliveries?per_page={_PAGE}{more}", doing)
        deliveries: list[_Delivery] = _read(_DELIVERIES, content, doing)
        attempts = [
            DeliveryAttempt(each.id, each.guid, each.delivered_at, each.status_code or 0) for each in deliveries
        ]
        return AttemptPage(attempts, _find_cursor(headers.get("Link", "")))

    def redeliver(self, webhook: str, attempt_id: int) -> None:
        path = f"{webhook}/deliveries/{attempt_id}/attempts"
        self._call("POST", path, f"redelivering {attempt_id} of {webhook}")

    def _call(self, method: str, path: str, doing: str) -> tuple[bytes, Message]:
        request = urllib.request.Request(f"{self._api_url}/{path}", method=method, headers=self._headers())  # noqa: S310 - the template allows https only
        try:
            with self._opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
                return answer.read(_MAX_BYTES), answer.headers
        except urllib.error.HTTPError as error:
            with error:
                raise _to_port_error(doing, error.code, error.headers, _read_message(error)) from None
        except (OSError, http.client.HTTPException) as error:
            raise TransientError(f"{doing}: no answer from {urlsplit(self._api_url).netloc}: {error!r}") from error

    def _headers(self) -> Mapping[str, str]:
        if not self._token:
            try:
                self._token = self._read_token().strip()
            except PermanentError as error:
                raise TokenRefusedError(str(error)) from error
        if not self._token or not self._token.isascii() or not self._token.isprintable() or " " in self._token:
            raise TokenRefusedError("the secret of GithubTokenSecretArn is no token: store the token alone, as text")
        return {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self._token}",
            "User-Agent": "relaunch",
        }


def _to_port_error(doing: str, status: int, headers: Message, message: str) -> Exception:
    """Return the error of the port for an answer other than 2xx."""
    text = f"{doing}: HTTP {status} {message}".rstrip()
    is_limited = (
        status == 429
        or "Retry-After" in headers
        or headers.get("X-RateLimit-Remaining") == "0"
        or "rate limit" in message.lower()
    )
    if status >= 500 or status == 408 or (status in (403, 429) and is_limited):
        return TransientError(text)
    if status == 401:
        return TokenRefusedError(f"{text}: GitHub does not accept the token: store another one")
    if status in (403, 404):
        return NotGrantedError(f"{text}: the token does not reach its webhooks for reading and writing, or it is gone")
    if 300 <= status < 400:
        return NotGrantedError(f"{text}: it has another name or address now")
    return PermanentError(text)


def _read_message(error: urllib.error.HTTPError) -> str:
    """Return GitHub's message of an error, empty without one, as from a proxy."""
    try:
        message = json.loads(error.read(_MAX_BYTES))["message"]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return ""
    return str(message)[:_MAX_MESSAGE]


def _read(model: Any, content: bytes, doing: str) -> Any:
    try:
        return model.validate_json(content)
    except ValidationError as error:
        raise TransientError(f"{doing}: the answer is malformed: {describe_errors(error)}") from None


def _find_cursor(link: str) -> str:
    """Return the cursor of the next page in a Link header ("Using pagination in the REST API"), empty without one."""
    found = _NEXT.search(link)
    return parse_qs(urlsplit(found[1]).query).get("cursor", [""])[0] if found else ""
