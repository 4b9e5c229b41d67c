"""Logs of ECS tasks in CloudWatch Logs, by DescribeTaskDefinition and GetLogEvents."""

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from relaunch_cli import exit_codes
from relaunch_cli.errors import CommandError
from relaunch_cli.job_logs import MOST_EMPTY_PAGES, LogDestination, Tail
from relaunch_cli.log_positions import ExpiredTokenError, LogEvent

if TYPE_CHECKING:
    import boto3


_MAX_EVENTS = 10_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class CloudWatchLogs:
    """Implements LogSource."""

    def __init__(self, session: "boto3.Session") -> None:
        self._session = session
        self._client = cache(self._make_client)
        # A revision never changes.
        self._destination = cache(self._find_destination)
        self._retention = cache(self._find_retention)

    def destination(self, revision_arn: str, container: str) -> LogDestination:
        return self._destination(revision_arn, container)

    def _find_destination(self, revision_arn: str, container: str) -> LogDestination:
        answer = self._session.client("ecs").describe_task_definition(taskDefinition=revision_arn)
        definitions = answer["taskDefinition"].get("containerDefinitions", [])
        found: Any = next((each for each in definitions if each.get("name") == container), {})
        configuration = found.get("logConfiguration", {})
        return read_destination(revision_arn, container, configuration)

    def read(
        self,
        destination: LogDestination,
        stream: str,
        token: str | None,
        since: datetime | None = None,
        *,
        until: datetime | None = None,
    ) -> tuple[list[LogEvent], str | None]:
        position = {"nextToken": token} if token else {}
        client = self._client(destination.region)
        try:
            answer = self._ask(destination, stream, _between(since, until), startFromHead=True, **position)
        except client.exceptions.InvalidParameterException as error:
            if token is None:
                raise
            raise ExpiredTokenError(str(error)) from error
        return (_events_of(answer), answer["nextForwardToken"]) if answer else ([], None)

    def tail(
        self,
        destination: LogDestination,
        stream: str,
        count: int,
        since: datetime | None = None,
        *,
        until: datetime | None = None,
        most_empty: int = MOST_EMPTY_PAGES,
    ) -> Tail:
        # A page has at most 10,000 events of 1 MB, or fewer, and the last page back is the one whose token comes again
        # (GetLogEvents). Without any event there would be no token to go on from.
        events: list[LogEvent] = []
        following: str | None = None
        position: dict[str, str] = {}
        empty = 0
        while True:
            limit = min(max(count - len(events), 1), _MAX_EVENTS)
            span = _between(since, until)
            answer = self._ask(destination, stream, span, startFromHead=False, limit=limit, **position)
            if answer is None:
                return Tail([], None)
            following = following or answer["nextForwardToken"]
            page = _events_of(answer)
            events = page + events
            empty = 0 if page else empty + 1
            is_whole = len(events) >= count or answer["nextBackwardToken"] == position.get("nextToken")
            if is_whole or empty >= most_empty:
                return Tail(events[-count:] if count else [], following, is_cut=not is_whole)
            position = {"nextToken": answer["nextBackwardToken"]}

    def kept_for(self, destination: LogDestination) -> timedelta | None:
        return self._retention(destination.region, destination.group)

    def _find_retention(self, region: str | None, group: str) -> timedelta | None:
        """Ask DescribeLogGroups, whose answer is sorted by name: a group comes before all that begin with its name."""
        client = self._client(region)
        try:
            found = client.describe_log_groups(logGroupNamePrefix=group, limit=1)["logGroups"]
        except client.exceptions.ClientError:
            # It is asked for a note alone, which whoever may not ask does without.
            return None
        days = next((each.get("retentionInDays") for each in found if each["logGroupName"] == group), None)
        return timedelta(days=days) if days else None

    def _ask(self, destination: LogDestination, stream: str, span: dict[str, int], **request: Any) -> Any:
        """Call GetLogEvents; None if there is no stream: it is created with the task's first line."""
        client = self._client(destination.region)
        try:
            return client.get_log_events(logGroupName=destination.group, logStreamName=stream, **span, **request)
        except client.exceptions.ResourceNotFoundException:
            return None

    def _make_client(self, region: str | None) -> Any:
        return self._session.client("logs", region_name=region)


def _between(since: datetime | None, until: datetime | None) -> dict[str, int]:
    """Return the range of GetLogEvents: its start is in it, its end is not."""
    ends = {"startTime": since, "endTime": until}
    return {name: (at - _EPOCH) // timedelta(milliseconds=1) for name, at in ends.items() if at is not None}


def _events_of(answer: Any) -> list[LogEvent]:
    return [
        LogEvent(datetime.fromtimestamp(each["timestamp"] / 1000, UTC), each["message"]) for each in answer["events"]
    ]


def read_destination(revision_arn: str, container: str, configuration: Any) -> LogDestination:
    """Return where the logConfiguration of a container sends its log.

    Raises:
        CommandError: it has another log driver, or no stream prefix.
    """
    driver = configuration.get("logDriver", "none")
    options = configuration.get("options", {})
    shown = f"container {container} of {revision_arn.rsplit('/', 1)[-1]}"
    if driver != "awslogs" or "awslogs-group" not in options:
        hint = "set logConfiguration to awslogs in the task definition; it applies to jobs accepted from then on"
        raise CommandError(
            f"{shown} does not log to CloudWatch Logs (log driver: {driver})", hint, exit_codes.NOT_FOUND
        )
    if "awslogs-stream-prefix" not in options:
        hint = "set awslogs-stream-prefix: without it streams are named by Docker container IDs"
        raise CommandError(f"{shown} has no awslogs-stream-prefix", hint, exit_codes.NOT_FOUND)
    return LogDestination(options["awslogs-group"], options["awslogs-stream-prefix"], options.get("awslogs-region"))
