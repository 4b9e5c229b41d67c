"""CloudWatch Logs as its users meet it: empty pages, tokens that never repeat, and tokens that expire."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from botocore.exceptions import ClientError

from fakes.clock import FakeClock

_TOKEN_LIFE = timedelta(hours=24)


class _NotFoundError(ClientError):
    """ResourceNotFoundException."""


class _InvalidError(ClientError):
    """InvalidParameterException."""


class _Exceptions:
    ClientError = ClientError
    ResourceNotFoundException = _NotFoundError
    InvalidParameterException = _InvalidError


@dataclass(frozen=True)
class _Token:
    at: datetime
    index: int
    empty: int = 0
    """How many empty pages were answered before it, of those of a gap."""


class FakeLogService:
    """Takes the place of boto3's session with one log group; a page holds two events, as many as `limit` going back.

    Of a stream whose events are all past the retention, each answer is empty and has new tokens (boto/boto3#4591). A
    stream with a gap answers that many empty pages first, whichever way it is read (boto/boto3#3718). A token is
    refused 24 hours after it was given (GetLogEventsResponse); the documentation does not name the error.
    """

    page_length = 2

    def __init__(self, clock: FakeClock, group: str = "/ecs/trainer") -> None:
        self.clock = clock
        self.group = group
        self.retention_days: int | None = 30
        self.may_describe = True
        self.streams: dict[str, list[tuple[datetime, str]]] = {}
        self.gaps: dict[str, int] = {}
        self.requests: list[dict[str, Any]] = []
        self.described = 0
        self.refused_tokens = 0
        self.exceptions = _Exceptions
        self._tokens: dict[str, _Token] = {}
        self._serial = count()

    def client(self, _service: str, region_name: str | None = None) -> "FakeLogService":
        return self

    def write(self, stream: str, *messages: str) -> None:
        """Write events of now."""
        self.streams.setdefault(stream, []).extend((self.clock.now(), each) for each in messages)

    def forget_tokens(self) -> None:
        """Take no token that was given until now."""
        self._tokens.clear()

    @property
    def refusal(self) -> ClientError:
        """Return what it answers to a request that is not valid."""
        return _refused("1 validation error detected")

    def pages_of(self, stream: str) -> int:
        """Return how many pages of a stream were asked for."""
        return sum(each["logStreamName"] == stream for each in self.requests)

    def describe_task_definition(self, *, taskDefinition: str) -> dict[str, Any]:  # noqa: N803 - as in boto3
        options = {"awslogs-group": self.group, "awslogs-stream-prefix": "train"}
        container = {"name": "main", "logConfiguration": {"logDriver": "awslogs", "options": options}}
        return {"taskDefinition": {"taskDefinitionArn": taskDefinition, "containerDefinitions": [container]}}

    def describe_log_groups(self, *, logGroupNamePrefix: str, limit: int) -> dict[str, Any]:  # noqa: N803
        self.described += 1
        if not self.may_describe:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "DescribeLogGroups")
        own: dict[str, Any] = {"logGroupName": self.group} | (
            {"retentionInDays": self.retention_days} if self.retention_days else {}
        )
        groups = [own, {"logGroupName": f"{self.group}-other", "retentionInDays": 1}]
        return {"logGroups": [each for each in groups if each["logGroupName"].startswith(logGroupNamePrefix)][:limit]}

    def get_log_events(self, **request: Any) -> dict[str, Any]:
        assert len(self.requests) < 5_000, "reading does not end"
        self.requests.append(request)
        stream = request["logStreamName"]
        if stream not in self.streams:
            raise _NotFoundError(
                {"Error": {"Code": "ResourceNotFoundException", "Message": "no stream"}}, "GetLogEvents"
            )
        given = self._read_token(request.get("nextToken"))
        if "endTime" in request and request["endTime"] <= request.get("startTime", 0):
            raise _refused("startTime must be before endTime")
        kept = [each for each in self.streams[stream] if self._is_kept(each[0])]
        if not kept and self.streams[stream]:
            return self._answer([], _Token(self.clock.now(), 0), _Token(self.clock.now(), 0))
        events = self.streams[stream]
        is_forward = request["startFromHead"]
        before = sum(_milliseconds(at) < request.get("startTime", 0) for at, _ in events)
        at = given or _Token(self.clock.now(), before if is_forward else len(events))
        if at.empty < self.gaps.get(stream, 0):
            later = _Token(self.clock.now(), at.index, at.empty + 1)
            return self._answer([], later, later)
        length = request.get("limit", self.page_length)
        first = at.index if is_forward else max(at.index - length, 0)
        last = min(at.index + length, len(events)) if is_forward else at.index
        page = [each for each in events[first:last] if self._is_kept(each[0]) and _is_between(each[0], request)]
        position = request.get("nextToken")
        is_end = position is not None and first == last
        gap = self.gaps.get(stream, 0)
        following = _Token(self.clock.now(), last, gap)
        previous = _Token(self.clock.now(), first, gap)
        return self._answer(page, following, previous, same=position if is_end else None)

    def _is_kept(self, at: datetime) -> bool:
        days = self.retention_days
        return days is None or self.clock.now() - at <= timedelta(days=days)

    def _read_token(self, given: str | None) -> _Token | None:
        if given is None:
            return None
        token = self._tokens.get(given)
        if token is None or self.clock.now() - token.at > _TOKEN_LIFE:
            self.refused_tokens += 1
            raise _refused("The specified nextToken is invalid.")
        return token

    def _answer(
        self, page: Iterable[tuple[datetime, str]], following: _Token, previous: _Token, same: str | None = None
    ) -> dict[str, Any]:
        made = []
        for token in (following, previous):
            name = same or f"token/{next(self._serial)}"
            self._tokens.setdefault(name, token)
            made.append(name)
        events = [{"timestamp": _milliseconds(at), "message": text} for at, text in page]
        return {"events": events, "nextForwardToken": made[0], "nextBackwardToken": made[1]}


def _refused(text: str) -> _InvalidError:
    return _InvalidError({"Error": {"Code": "InvalidParameterException", "Message": text}}, "GetLogEvents")


def _milliseconds(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _is_between(at: datetime, request: dict[str, Any]) -> bool:
    end = request.get("endTime")
    return request.get("startTime", 0) <= _milliseconds(at) and (end is None or _milliseconds(at) < end)
