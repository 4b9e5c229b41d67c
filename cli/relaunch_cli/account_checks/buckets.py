"""The buckets of checkpoints and of uploads, and what sends the events of triggers to the stack."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from relaunch.core.checks import Check, is_ok, problem
from relaunch.core.definitions.checkpoint_bucket import BucketFacts, CheckpointGrants, bucket_notices
from relaunch.core.triggers.schedules import ChangedSchedule
from relaunch.core.triggers.upload_rules import ChangedRule, RuleChange


@dataclass(frozen=True, slots=True)
class CheckpointBucket:
    """A bucket of checkpoints: `facts` as `apply` has them, and its region."""

    name: str
    facts: BucketFacts
    region: str = ""


def check_checkpoint_bucket(bucket: CheckpointBucket, region: str, grants: CheckpointGrants) -> Check:
    """Check a bucket: that it exists, in the stack's region, and that the stack may read it and use its key."""
    name = f"checkpoint bucket {bucket.name}"
    if not bucket.facts.exists:
        constraint = "" if region == "us-east-1" else f" --create-bucket-configuration LocationConstraint={region}"
        create = f"aws s3api create-bucket --bucket {bucket.name}{constraint}"
        return problem(name, "it does not exist: no job can save, and none resumes", create)
    if notices := bucket_notices(bucket.name, bucket.facts, grants):
        buckets = ",".join(dict.fromkeys((*grants.buckets, bucket.name)))
        keys = ",".join(dict.fromkeys((*grants.key_arns, bucket.facts.key or "ARN")))
        deploy = f"relaunch deploy CheckpointBuckets={buckets}"
        return problem(name, "; ".join(notices), f"{deploy} CheckpointKeyArns={keys}" if bucket.facts.key else deploy)
    if bucket.region not in ("", region):
        text = (
            f"it is in {bucket.region}, and machines are in {region}: every checkpoint crosses regions, which is paid"
        )
        return problem(name, text, f"name a bucket in {region} as `checkpoint`, then: relaunch apply FILE")
    return is_ok(name, f"in {region}, and the stack may read it")


@dataclass(frozen=True, slots=True)
class Notifications:
    """The notification configuration of a bucket: whether events go to EventBridge, and whether it has other rules."""

    is_on: bool
    has_others: bool = False


def check_uploads(bucket: str, notifications: Notifications | None) -> Check:
    """Check that a bucket that a trigger watches sends its events to EventBridge; None: there is no such bucket."""
    name = f"uploads to {bucket}"
    if notifications is None:
        return problem(name, "the bucket does not exist, and a trigger watches it", f"aws s3 mb s3://{bucket}")
    if notifications.is_on:
        return is_ok(name, "its events go to EventBridge")
    text = "EventBridge is not switched on for the bucket: no upload starts a job"
    put = f"aws s3api put-bucket-notification-configuration --bucket {bucket} --notification-configuration"
    if notifications.has_others:
        # PutBucketNotificationConfiguration replaces the whole configuration (Amazon S3 API Reference).
        get = f"aws s3api get-bucket-notification-configuration --bucket {bucket}"
        return problem(name, text, f"{get} | jq '.EventBridgeConfiguration = {{}}' > all.json && {put} file://all.json")
    return problem(name, text, f"{put} '{{\"EventBridgeConfiguration\": {{}}}}'")


def check_upload_rules(changes: Iterable[ChangedRule]) -> Iterator[Check]:
    """Check the rules of EventBridge that the registered triggers need; one too many costs nothing."""
    name = "rules of triggers"
    missing = [each.rule for each in changes if each.change is not RuleChange.REMOVED]
    if not missing:
        yield is_ok(name, "what definitions watch reaches the stack")
        return
    buckets = ", ".join(sorted({each.bucket for each in missing if not each.sources}))
    sources = ", ".join(sorted({source for each in missing for source in each.sources}))
    what = [f"{kind} {names}" for kind, names in (("uploads to", buckets), ("events of", sources)) if names]
    text = f"{len(missing)} missing or changed, for {' and '.join(what)}: they start no job"
    yield problem(name, text, "relaunch apply FILE, which writes them, with the file of any registered definition")


def check_schedules(changes: Iterable[ChangedSchedule]) -> Iterator[Check]:
    """Check the schedules that the registered triggers need; one too many starts nothing."""
    name = "schedules of triggers"
    missing = [str(each.schedule) for each in changes if each.change is not RuleChange.REMOVED]
    if not missing:
        yield is_ok(name, "every time of a schedule reaches the stack")
        return
    text = f"missing or changed: {', '.join(missing)}; their times start no job"
    yield problem(name, text, "relaunch apply FILE, which writes them, with the file of any definition with a schedule")
