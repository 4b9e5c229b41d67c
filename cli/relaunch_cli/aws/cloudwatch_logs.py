"""Logs of ECS tasks in CloudWatch Logs, by DescribeTaskDefinition and GetLogEvents."""

from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from relaunch_cli import exit_codes
from relaunch_cli.errors import CommandError
from relaunch_cli.job_logs import LogDestination, LogEvent

if TYPE_CHECKING:
    import boto3


class CloudWatchLogs:
    """Implements LogSource."""

    def __init__(self, session: "boto3.Session") -> None:
        self._session = session
        self._client = cache(self._make_client)

    def destination(self, revision_arn: str, container: str) -> LogDestination:
        answer = self._session.client("ecs").describe_task_definition(taskDefinition=revision_arn)
        definitions = answer["taskDefinition"].get("containerDefinitions", [])
        found: Any = next((each for each in definitions if each.get("name") == container), {})
        configuration = found.get("logConfiguration", {})
        return read_destination(revision_arn, container, configuration)

    def read(self, destination: LogDestination, stream: str, token: str | None) -> tuple[list[LogEvent], str | None]:
        client = self._client(destination.region)
        position = {"nextToken": token} if token else {}
        try:
            answer = client.get_log_events(
                logGroupName=destination.group, logStreamName=stream, startFromHead=True, **position
            )
        except client.exceptions.ResourceNotFoundException:
            # The stream is created with the task's first line.
            return [], None
        events = [
            LogEvent(datetime.fromtimestamp(each["timestamp"] / 1000, UTC), each["message"])
            for each in answer["events"]
        ]
        return events, answer["nextForwardToken"]

    def _make_client(self, region: str | None) -> Any:
        return self._session.client("logs", region_name=region)


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
