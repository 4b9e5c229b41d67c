"""The permissions that calls of an SDK require, for the services that no simulator of ours authorizes itself.

Source: the Service Authorization Reference, which has each action (reference.check_permission), and the pages named
beside the rules. A call that has no rule here is an error: it is never taken for allowed.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from relaunch_local.iam.conditions import PolicyError
from relaunch_local.iam.permission import ContextValue, Permission

Parameters = Mapping[str, Any]
Required = tuple[str, str, Mapping[str, ContextValue]]
"""An action, a resource, and condition keys."""


@dataclass(frozen=True, slots=True)
class CalledAccount:
    """What permissions depend on beside a call: the account, its region, and its KMS keys."""

    account: str
    region: str
    key_of_bucket: Mapping[str, str] = field(default_factory=dict)
    """ARNs of the customer managed keys that buckets are encrypted with."""
    leading_key: Mapping[str, str] = field(default_factory=lambda: {"": "pk"})
    """Names of the partition keys of the jobs table, by index; empty for the table."""

    def arn(self, service: str, resource: str, *, region: str | None = None, account: str | None = None) -> str:
        """Return an ARN; region and account are this one's unless others are given."""
        region = self.region if region is None else region
        account = self.account if account is None else account
        return f"arn:aws:{service}:{region}:{account}:{resource}"


@dataclass(frozen=True, slots=True)
class CallPermissions:
    """Finds the permissions of calls in an account."""

    account: CalledAccount

    def required(self, caller: str, service: str, operation: str, parameters: Parameters) -> list[Permission]:
        """Return the permissions that a call requires; `caller` is the access key of who makes it.

        Raises:
            PolicyError: there is no rule for the call.
        """
        rule = _RULES.get((service, operation))
        if rule is None:
            raise PolicyError(f"which permissions {service}:{operation} requires is not known here")
        return [Permission(caller, *each) for each in rule(self.account, parameters)]


Rule = Callable[[CalledAccount, Parameters], Iterator[Required]]


# ── DynamoDB: the table and each index are resources of their own ("IAM policy to grant access to a table's indexes")


def _item_action(action: str, holder: str) -> Rule:
    def rule(account: CalledAccount, parameters: Parameters) -> Iterator[Required]:
        yield _of_item(account, f"dynamodb:{action}", parameters["TableName"], parameters[holder])

    return rule


def _of_item(account: CalledAccount, action: str, table: str, item: Parameters, enclosing: str = "") -> Required:
    leading = (str(next(iter(item[account.leading_key[""]].values()))),)
    keys = {"dynamodb:LeadingKeys": leading, "dynamodb:EnclosingOperation": enclosing or None}
    return action, account.arn("dynamodb", f"table/{_table_name(table)}"), keys


def _table_name(table: str) -> str:
    return table.rpartition("table/")[2]


def _query(account: CalledAccount, parameters: Parameters) -> Iterator[Required]:
    index = parameters.get("IndexName", "")
    table = _table_name(parameters["TableName"])
    found = re.match(r"\s*(#?\w+)\s*=\s*(:\w+)", parameters["KeyConditionExpression"])
    if found is None:
        raise PolicyError(f"the partition key is not read from {parameters['KeyConditionExpression']}")
    leading = (str(next(iter(parameters["ExpressionAttributeValues"][found[2]].values()))),)
    resource = f"table/{table}/index/{index}" if index else f"table/{table}"
    yield "dynamodb:Query", account.arn("dynamodb", resource), {"dynamodb:LeadingKeys": leading}


_TRANSACTION = {
    "Put": ("PutItem", "Item"),
    "Update": ("UpdateItem", "Key"),
    "Delete": ("DeleteItem", "Key"),
    "ConditionCheck": ("ConditionCheckItem", "Key"),
}


def _transact(account: CalledAccount, parameters: Parameters) -> Iterator[Required]:
    """Require the permissions of the parts ("IAM and DynamoDB transactions")."""
    for each in parameters["TransactItems"]:
        ((kind, body),) = each.items()
        action, holder = _TRANSACTION[kind]
        yield _of_item(account, f"dynamodb:{action}", body["TableName"], body[holder], "TransactWriteItems")


def _table_action(action: str) -> Rule:
    def rule(account: CalledAccount, parameters: Parameters) -> Iterator[Required]:
        yield f"dynamodb:{action}", account.arn("dynamodb", f"table/{_table_name(parameters['TableName'])}"), {}

    return rule


# ── SQS: a batch requires the permission of its single action ("Actions, resources, and condition keys for Amazon SQS")


def _queue(action: str) -> Rule:
    def rule(account: CalledAccount, parameters: Parameters) -> Iterator[Required]:
        yield f"sqs:{action}", account.arn("sqs", parameters["QueueUrl"].rpartition("/")[2]), {}

    return rule


# ── S3: names of actions differ from those of operations ("Required permissions for Amazon S3 API operations")


_LISTING = {"s3:prefix": "Prefix", "s3:delimiter": "Delimiter", "s3:max-keys": "MaxKeys"}


def _bucket(action: str, keys: Mapping[str, str] | None = None) -> Rule:
    """Require a permission for a bucket; `keys` are parameters by condition key."""

    def rule(account: CalledAccount, parameters: Parameters) -> Iterator[Required]:
        given = {key: str(parameters[name]) if name in parameters else None for key, name in (keys or {}).items()}
        yield f"s3:{action}", account.arn("s3", parameters["Bucket"], region="", account=""), given

    return rule


def _object(action: str, key_action: str) -> Rule:
    """Require a permission for an object, and for the KMS key of its bucket, which S3 uses for the caller."""

    def rule(account: CalledAccount, parameters: Parameters) -> Iterator[Required]:
        bucket = parameters["Bucket"]
        yield f"s3:{action}", account.arn("s3", f"{bucket}/{parameters['Key']}", region="", account=""), {}
        if bucket in account.key_of_bucket:
            key = account.key_of_bucket[bucket]
            yield key_action, key, {"kms:ViaService": f"s3.{key.split(':')[3]}.amazonaws.com"}

    return rule


# ── Others


def _named(action: str, resource: str) -> Rule:
    """Require a permission for a resource that a parameter names, or whose ARN it is."""
    (parameter,) = re.findall(r"\{(\w+)\}", resource)

    def rule(account: CalledAccount, parameters: Parameters) -> Iterator[Required]:
        given = str(parameters[parameter])
        is_arn = given.startswith("arn:")
        yield action, given if is_arn else account.arn(action.partition(":")[0], resource.format(**parameters)), {}

    return rule


def _anything(action: str) -> Rule:
    def rule(_account: CalledAccount, _parameters: Parameters) -> Iterator[Required]:
        yield action, "*", {}

    return rule


def _nothing(_account: CalledAccount, _parameters: Parameters) -> Iterator[Required]:
    """Require no permission: GetCallerIdentity answers everybody (AWS STS API Reference)."""
    yield from ()


def _web_identity(_account: CalledAccount, parameters: Parameters) -> Iterator[Required]:
    keys: dict[str, ContextValue] = {
        "sts:IdentityTokenAudience": tuple(parameters["Audience"]),
        "sts:DurationSeconds": str(parameters["DurationSeconds"]) if "DurationSeconds" in parameters else None,
        "sts:SigningAlgorithm": parameters["SigningAlgorithm"],
    }
    yield "sts:GetWebIdentityToken", "*", keys


def _parameters(account: CalledAccount, parameters: Parameters) -> Iterator[Required]:
    for name in parameters["Names"]:
        # Public parameters belong to AWS, and their ARNs name no account.
        owner = "" if name.startswith("/aws/service/") else None
        yield "ssm:GetParameters", account.arn("ssm", f"parameter/{name.lstrip('/')}", account=owner), {}


def _parameter(action: str, name: str = "Name") -> Rule:
    """Require a permission for a parameter, or for a path of parameters ("Actions … for AWS Systems Manager")."""

    def rule(account: CalledAccount, parameters: Parameters) -> Iterator[Required]:
        yield f"ssm:{action}", account.arn("ssm", f"parameter/{parameters[name].strip('/')}"), {}

    return rule


def _repository(action: str) -> Rule:
    def rule(account: CalledAccount, parameters: Parameters) -> Iterator[Required]:
        owner = parameters.get("registryId") or None
        for name in parameters.get("repositoryNames") or [parameters["repositoryName"]]:
            yield f"ecr:{action}", account.arn("ecr", f"repository/{name}", account=owner), {}

    return rule


def _stack(action: str) -> Rule:
    """Require a permission for a stack, whose ARN ends in an ID that its name does not tell."""

    def rule(account: CalledAccount, parameters: Parameters) -> Iterator[Required]:
        name = str(parameters["StackName"])
        arn = name if name.startswith("arn:") else account.arn("cloudformation", f"stack/{name}/0a1b2c3d")
        yield f"cloudformation:{action}", arn, {}

    return rule


def _log_events(account: CalledAccount, parameters: Parameters) -> Iterator[Required]:
    group = parameters["logGroupName"]
    stream = parameters["logStreamName"]
    yield "logs:GetLogEvents", account.arn("logs", f"log-group:{group}:log-stream:{stream}"), {}


def _log_groups(account: CalledAccount, _parameters: Parameters) -> Iterator[Required]:
    """Require a permission for all groups, as one without a name (hashicorp/terraform-provider-aws#8804)."""
    yield "logs:DescribeLogGroups", account.arn("logs", "log-group::log-stream:"), {}


def _event_rule(action: str, name: str = "Rule") -> Rule:
    """Require a permission for a rule on the default event bus."""

    def rule(account: CalledAccount, parameters: Parameters) -> Iterator[Required]:
        yield f"events:{action}", account.arn("events", f"rule/{parameters[name]}"), {}

    return rule


_PATTERN_KEYS = ("source", "detail-type")


def _put_rule(account: CalledAccount, parameters: Parameters) -> Iterator[Required]:
    """Require a permission for a rule with what its pattern selects ("Using IAM policy conditions in EventBridge")."""
    pattern = json.loads(parameters["EventPattern"])
    keys = {f"events:{name}": tuple(map(str, pattern[name])) if name in pattern else None for name in _PATTERN_KEYS}
    yield "events:PutRule", account.arn("events", f"rule/{parameters['Name']}"), keys


def _put_targets(account: CalledAccount, parameters: Parameters) -> Iterator[Required]:
    targets = tuple(str(each["Arn"]) for each in parameters["Targets"])
    yield "events:PutTargets", account.arn("events", f"rule/{parameters['Rule']}"), {"events:TargetArn": targets}


def _put_events(account: CalledAccount, parameters: Parameters) -> Iterator[Required]:
    """Require a permission for each entry, with its source and its detail type."""
    for entry in parameters["Entries"]:
        bus = entry.get("EventBusName", "default")
        keys = {"events:source": (str(entry["Source"]),), "events:detail-type": (str(entry["DetailType"]),)}
        yield "events:PutEvents", account.arn("events", f"event-bus/{bus}"), keys


def _schedule(action: str) -> Rule:
    """Require a permission for a schedule, and to pass the role that it is given."""

    def schedule(account: CalledAccount, parameters: Parameters) -> Iterator[Required]:
        name = f"schedule/{parameters['GroupName']}/{parameters['Name']}"
        yield f"scheduler:{action}", account.arn("scheduler", name), {}
        if "Target" in parameters:
            service = {"iam:PassedToService": "scheduler.amazonaws.com"}
            yield "iam:PassRole", str(parameters["Target"]["RoleArn"]), service

    return schedule


_RULES: Mapping[tuple[str, str], Rule] = {
    ("dynamodb", "GetItem"): _item_action("GetItem", "Key"),
    ("dynamodb", "PutItem"): _item_action("PutItem", "Item"),
    ("dynamodb", "UpdateItem"): _item_action("UpdateItem", "Key"),
    ("dynamodb", "DeleteItem"): _item_action("DeleteItem", "Key"),
    ("dynamodb", "Query"): _query,
    ("dynamodb", "TransactWriteItems"): _transact,
    ("dynamodb", "DescribeTable"): _table_action("DescribeTable"),
    ("sqs", "SendMessage"): _queue("SendMessage"),
    ("sqs", "ReceiveMessage"): _queue("ReceiveMessage"),
    ("sqs", "DeleteMessage"): _queue("DeleteMessage"),
    ("sqs", "ChangeMessageVisibility"): _queue("ChangeMessageVisibility"),
    ("sqs", "ChangeMessageVisibilityBatch"): _queue("ChangeMessageVisibility"),
    ("sqs", "GetQueueAttributes"): _queue("GetQueueAttributes"),
    ("s3", "GetObject"): _object("GetObject", "kms:Decrypt"),
    ("s3", "HeadObject"): _object("GetObject", "kms:Decrypt"),
    ("s3", "PutObject"): _object("PutObject", "kms:GenerateDataKey"),
    ("s3", "ListObjectsV2"): _bucket("ListBucket", _LISTING),
    ("s3", "HeadBucket"): _bucket("ListBucket"),
    ("s3", "GetBucketEncryption"): _bucket("GetEncryptionConfiguration"),
    ("s3", "GetBucketNotificationConfiguration"): _bucket("GetBucketNotification"),
    ("s3", "PutBucketNotificationConfiguration"): _bucket("PutBucketNotification"),
    ("s3", "GetBucketLocation"): _bucket("GetBucketLocation"),
    ("ecr", "BatchGetImage"): _repository("BatchGetImage"),
    ("ecr", "GetDownloadUrlForLayer"): _repository("GetDownloadUrlForLayer"),
    ("ecr", "DescribeRepositories"): _repository("DescribeRepositories"),
    ("eks", "DescribeCluster"): _named("eks:DescribeCluster", "cluster/{name}"),
    ("cloudformation", "DescribeStacks"): _stack("DescribeStacks"),
    ("events", "ListRules"): _anything("events:ListRules"),
    ("events", "ListTargetsByRule"): _event_rule("ListTargetsByRule"),
    ("events", "PutRule"): _put_rule,
    ("events", "PutTargets"): _put_targets,
    ("events", "RemoveTargets"): _event_rule("RemoveTargets"),
    ("events", "DeleteRule"): _event_rule("DeleteRule", "Name"),
    ("events", "PutEvents"): _put_events,
    ("scheduler", "ListSchedules"): _anything("scheduler:ListSchedules"),
    ("scheduler", "GetSchedule"): _schedule("GetSchedule"),
    ("scheduler", "CreateSchedule"): _schedule("CreateSchedule"),
    ("scheduler", "UpdateSchedule"): _schedule("UpdateSchedule"),
    ("scheduler", "DeleteSchedule"): _schedule("DeleteSchedule"),
    ("logs", "DescribeLogGroups"): _log_groups,
    ("logs", "GetLogEvents"): _log_events,
    ("secretsmanager", "GetSecretValue"): _named("secretsmanager:GetSecretValue", "secret:{SecretId}"),
    ("secretsmanager", "PutSecretValue"): _named("secretsmanager:PutSecretValue", "secret:{SecretId}"),
    ("ssm", "GetParameters"): _parameters,
    ("ssm", "GetParametersByPath"): _parameter("GetParametersByPath", "Path"),
    ("ssm", "DescribeParameters"): _anything("ssm:DescribeParameters"),
    ("ssm", "PutParameter"): _parameter("PutParameter"),
    ("ssm", "DeleteParameter"): _parameter("DeleteParameter"),
    ("sns", "Publish"): _named("sns:Publish", "{TopicArn}"),
    ("sts", "GetCallerIdentity"): _nothing,
    ("sts", "GetWebIdentityToken"): _web_identity,
    ("pricing", "GetProducts"): _anything("pricing:GetProducts"),
    ("service-quotas", "GetServiceQuota"): _anything("servicequotas:GetServiceQuota"),
}  # fmt: skip


def operations() -> list[tuple[str, str]]:
    """Return every call that has a rule: the service by boto3's name, and the operation."""
    return list(_RULES)
