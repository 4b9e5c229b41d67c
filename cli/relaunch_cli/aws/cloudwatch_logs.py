"""Logs of ECS tasks in CloudWatch Logs, by DescribeTaskDefinition and GetLogEvents."""

from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from relaunch_cli import exit_codes
from relaunch_cli.errors import CommandError
from relaunch_cli.job_logs import LogDestination, LogEvent

if TYPE_CHECKING:
    import boto3


_MAX_EVENTS = 10_000


class CloudWatchLogs:
    """Implements LogSource."""

    def __init__(self, session: "boto3.Session") -> None:
        self._session = session
        self._client = cache(self._make_client)
        # A revision never changes.
        self._destination = cache(self._find_destination)

    def destination(self, revision_arn: str, container: str) -> LogDestination:
        return self._destination(revision_arn, container)

    def _find_destination(self, revision_arn: str, container: str) -> LogDestination:
        answer = self._session.client("ecs").describe_task_definition(taskDefinition=revision_arn)
        definitions = answer["taskDefinition"].get("containerDefinitions", [])
        found: Any = next((each for each in definitions if each.get("name") == container), {})
        configuration = found.get("logConfiguration", {})
        return read_destination(revision_arn, container, configuration)

    def read(
        self, destination: LogDestination, stream: str, token: str | None, since: datetime | None = None
    ) -> tuple[list[LogEvent], str | None]:
        answer = self._ask(destination, stream, since, startFromHead=True, **({"nextToken": token} if token else {}))
        return (_events_of(answer), answer["nextForwardToken"]) if answer else ([], None)

    def tail(
        self, destination: LogDestination, stream: str, count: int, since: datetime | None = None
    ) -> tuple[list[LogEvent], str | None]:
        # A page has at most 10,000 events of 1 MB, or fewer, and the last page back is the one whose token comes again
        # (GetLogEvents). Without any event there would be no token to go on from.
        events: list[LogEvent] = []
        following: str | None = None
        position: dict[str, str] = {}
        while True:
            limit = min(max(count - len(events), 1), _MAX_EVENTS)
            answer = self._ask(destination, stream, since, startFromHead=False, limit=limit, **position)
            if answer is None:
                return [], None
            following = following or answer["nextForwardToken"]
            events = _events_of(answer) + events
            if len(events) >= count or answer["nextBackwardToken"] == position.get("nextToken"):
                return events[-count:] if count else [], following
            position = {"nextToken": answer["nextBackwardToken"]}

    def _ask(self, destination: LogDestination, stream: str, since: datetime | None, **request: Any) -> Any:
        """Call GetLogEvents; None if there is no stream: it is created with the task's first line."""
        client = self._client(destination.region)
        start = {"startTime": int(since.timestamp() * 1000)} if since else {}
        try:
            return client.get_log_events(logGroupName=destination.group, logStreamName=stream, **start, **request)
        except client.exceptions.ResourceNotFoundException:
            return None

    def _make_client(self, region: str | None) -> Any:
        return self._session.client("logs", region_name=region)


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
