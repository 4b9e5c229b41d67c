"""Connection to a deployed stack: its dependencies, logs and dead-letter queues."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

from relaunch_cli import exit_codes
from relaunch_cli.aws.configuration import configuration_files, configured_region
from relaunch_cli.aws.regions import check_partition, check_region, tell_region
from relaunch_cli.errors import CREDENTIALS_HINT, REGION_HINT, CommandError, NotConnectedError

if TYPE_CHECKING:
    import boto3

    from relaunch.core.checks import Check
    from relaunch.core.definitions.definition import JobDefinition
    from relaunch.ports import DeadLetters, Dependencies, JobListing, OfferingSource, Schedules, UploadRules
    from relaunch.settings import Settings
    from relaunch_cli.account_readers.diagnosis import StackAccess
    from relaunch_cli.aws.account import AwsAccount
    from relaunch_cli.aws.ami_source import AmiSource
    from relaunch_cli.aws.local_world import LocalControls
    from relaunch_cli.aws.notices import StackNotices
    from relaunch_cli.aws.webhook_secret import WebhookSecretStore
    from relaunch_cli.job_logs import LogSource, PodLogSource

_OTHER_STACK_HINT = "is it a stack of Relaunch, completely deployed, and not older than this command?"
_WEBHOOK_OUTPUTS = ("WebhookUrl", "WebhookSecretArn", "WebhookPreviousSecretHours")
_UPLOAD_OUTPUTS = ("UploadRulePrefix", "IntakeDeadLetterQueueArn")


class AwsConnection:
    """Implements Connection for a deployed stack, with the caller's own credentials."""

    def __init__(self, stack: str, region: str = "") -> None:
        self._stack = stack
        self._region = region

    @cached_property
    def _session(self) -> "boto3.Session":
        import boto3

        # boto3 itself reads AWS_DEFAULT_REGION and the profile only.
        session = boto3.Session(region_name=self._region or os.environ.get("AWS_REGION") or None)
        if self._region:
            check_region(self._region, session)
        elif session.region_name:
            check_partition(session.region_name, session)
        tell_region(session)
        # Making clients is not thread-safe (boto3 guide, "Multithreading"), and the dashboard answers in threads.
        session.client = _one_at_a_time(session.client)  # type: ignore[method-assign]
        return session

    @cached_property
    def deps(self) -> "Dependencies":
        settings = self._settings  # first: bootstrap takes long to import
        from relaunch.bootstrap import make_dependencies

        return make_dependencies(settings, self._session)

    @cached_property
    def all_types(self) -> "Dependencies":
        settings = self._settings
        from relaunch.bootstrap import make_dependencies

        return make_dependencies(settings, self._session, has_all_types=True)

    @cached_property
    def without_stack(self) -> "OfferingSource":
        from relaunch_cli.aws.regional_offerings import offerings_without_stack

        return offerings_without_stack(self._session)

    @cached_property
    def jobs(self) -> "JobListing":
        self._require_region()
        from relaunch.adapters.aws.client_config import CLIENT_CONFIG
        from relaunch.adapters.aws.dynamodb.job_listing import DynamoDbJobListing
        from relaunch.adapters.aws.dynamodb.table import JobsTable
        from relaunch_cli.aws.table_names import KeptTableListing, TableNames, cache_folder

        client = self._session.client("dynamodb", config=CLIENT_CONFIG)
        names = TableNames(self._session, self._stack, client.meta.endpoint_url, cache_folder())
        return KeptTableListing(names, self._table_name, lambda name: DynamoDbJobListing(JobsTable(client, name)))

    def _table_name(self) -> str:
        name = self._outputs().get("TableName")
        if name is None:
            raise self._other_stack("output TableName is missing")
        return name

    def now(self) -> datetime:
        return datetime.now(UTC)

    @cached_property
    def _settings(self) -> "Settings":
        outputs = self._outputs()
        from relaunch.setting_values import InvalidSettingsError
        from relaunch.settings import Settings

        try:
            return Settings.from_stack_outputs(outputs)
        except InvalidSettingsError as error:
            raise self._other_stack(str(error)) from error

    def _other_stack(self, problem: str) -> CommandError:
        return CommandError(f"stack {self._stack!r}: {problem}", _OTHER_STACK_HINT, exit_codes.NOT_FOUND)

    @cached_property
    def logs(self) -> "LogSource":
        from relaunch_cli.aws.cloudwatch_logs import CloudWatchLogs

        return CloudWatchLogs(self._session)

    @cached_property
    def pod_logs(self) -> "PodLogSource":
        settings = self._settings
        from relaunch.bootstrap import open_own_cluster
        from relaunch_cli.pod_logs import PodLogs

        return PodLogs(open_own_cluster(settings, self._session), settings.machines.stack)

    def amis(self, region: str) -> "AmiSource":
        from relaunch.adapters.aws.ami_parameters import SsmAmis

        chosen = region or self._session.region_name
        if not chosen:
            raise _no_region()
        check_region(chosen, self._session)
        return SsmAmis(self._session.client("ssm", region_name=chosen), chosen)

    @cached_property
    def dead_letters(self) -> "DeadLetters":
        from relaunch.bootstrap import make_dead_letters

        found = make_dead_letters(self._outputs(), self._session)
        if not found.queues():
            message = f"stack {self._stack!r} has no dead-letter queues"
            raise CommandError(message, _OTHER_STACK_HINT, exit_codes.NOT_FOUND)
        return found

    @cached_property
    def caller(self) -> str:
        from relaunch.core.definitions.ownership import caller_of

        return caller_of(self._session.client("sts").get_caller_identity()["Arn"])

    @cached_property
    def upload_rules(self) -> "UploadRules":
        outputs = self._outputs()
        missing = [name for name in _UPLOAD_OUTPUTS if name not in outputs]
        if missing:
            raise self._other_stack(f"output {missing[0]} is missing")
        # A stack that was deployed without uploads has no queue for them.
        prefix, dead_letters = (outputs[name] for name in _UPLOAD_OUTPUTS)
        queue = outputs.get("UploadsQueueArn", "")
        from relaunch.adapters.aws.upload_rules import EventBridgeUploadRules

        return EventBridgeUploadRules(self._session.client("events"), prefix, queue, dead_letters)

    @cached_property
    def schedules(self) -> "Schedules":
        from relaunch.adapters.aws.schedules import SchedulerGroup

        outputs = self._outputs()
        # A stack that was deployed without a queue of uploads, or by an earlier release, has none of them.
        names = ("ScheduleGroupName", "SchedulesRoleArn", "UploadsQueueArn", "IntakeDeadLetterQueueArn")
        group, role, queue, dead_letters = (outputs.get(name, "") for name in names)
        return SchedulerGroup(self._session.client("scheduler"), group, role, queue, dead_letters)

    @cached_property
    def webhook(self) -> "WebhookSecretStore":
        outputs = self._outputs()
        missing = [name for name in _WEBHOOK_OUTPUTS if name not in outputs]
        if len(missing) == len(_WEBHOOK_OUTPUTS) and _UPLOAD_OUTPUTS[0] in outputs:
            hint = "relaunch deploy Webhook=on"
            raise CommandError(f"the stack {self._stack} has no webhook", hint, exit_codes.NOT_FOUND)
        if missing:
            raise self._other_stack(f"output {missing[0]} is missing")
        url, secret_id, hours = (outputs[name] for name in _WEBHOOK_OUTPUTS)
        from relaunch_cli.aws.webhook_secret import SecretsManagerStore

        client = self._session.client("secretsmanager")
        return SecretsManagerStore(client, secret_id, url.rstrip("/") + "/", float(hours) * 3600)

    @cached_property
    def notices(self) -> "StackNotices":
        outputs = self._outputs()
        from relaunch_cli.aws.notices import open_notices

        return open_notices(outputs, self._stack, self._session.client)

    @cached_property
    def account(self) -> "AwsAccount":
        from relaunch_cli.aws.account import AwsAccount

        if not self._session.region_name:
            raise _no_region()
        return AwsAccount(self._session)

    @cached_property
    def access(self) -> "StackAccess":
        settings = self._settings
        from relaunch_cli.account_readers.diagnosis import StackAccess

        providers = settings.capacity_providers
        return StackAccess(self._outputs(), settings.cluster, providers, self.deps, self.upload_rules, self.schedules)

    @cached_property
    def local_world(self) -> "LocalControls":
        from relaunch_cli.aws.local_world import LocalWorld

        return LocalWorld(self._session)

    def check_watched(self, definitions: "Sequence[JobDefinition]") -> "Sequence[Check]":
        from relaunch_cli.account_readers.calls import AccountCalls
        from relaunch_cli.account_readers.diagnosis import make_checks, parts_of_triggers

        return make_checks(parts_of_triggers(definitions, self._outputs(), AccountCalls(self.account)))

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def _outputs(self) -> Mapping[str, str]:
        self._require_region()
        from botocore.config import Config
        from botocore.exceptions import ClientError, NoCredentialsError

        config = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 2})
        try:
            client = self._session.client("cloudformation", config=config)
            answer = client.describe_stacks(StackName=self._stack)
        except NoCredentialsError as error:
            raise NotConnectedError(f"no AWS credentials: {error}", CREDENTIALS_HINT, exit_codes.REFUSED) from error
        except ClientError as error:
            # CloudFormation answers ValidationError for a stack that is not there (DescribeStacks, "Errors").
            if error.response["Error"]["Code"] != "ValidationError":
                raise
            name_it = "name yours with --stack or RELAUNCH_STACK, and check AWS_REGION and AWS_PROFILE"
            raise NotConnectedError(
                f"there is no stack {self._stack!r} in {self._session.region_name}",
                f"`relaunch deploy` makes one; {name_it}",
                exit_codes.NOT_FOUND,
            ) from error
        stack = answer["Stacks"][0]
        # Its table outlives it: a job that is written there now is seen by nobody.
        if stack.get("StackStatus") == "DELETE_IN_PROGRESS":
            message = f"the stack {self._stack!r} is being removed"
            raise CommandError(message, "its jobs are cancelled, and it takes no more", exit_codes.NOT_FOUND)
        return {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", [])}

    def _require_region(self) -> None:
        # Looked for before boto3 is imported.
        is_configured = self._region or configured_region() or configuration_files()
        if not is_configured or not self._session.region_name:
            raise _no_region()


def _one_at_a_time(make: Callable[..., Any]) -> Callable[..., Any]:
    lock = Lock()

    def made(*arguments: Any, **words: Any) -> Any:
        with lock:
            return make(*arguments, **words)

    return made


def _no_region() -> NotConnectedError:
    return NotConnectedError("no AWS region is set", REGION_HINT, exit_codes.REFUSED)
