"""Check the bucket of a definition's checkpoints with the identity of the caller, before a job needs it."""

from relaunch.core.definitions.checkpoint_bucket import BucketFacts, bucket_notices, bucket_of, bucket_problem
from relaunch.core.definitions.definition import JobDefinition
from relaunch.ports import PlanDependencies, PortError


def check_bucket(definition: JobDefinition, deps: PlanDependencies) -> tuple[str, tuple[str, ...]]:
    """Return why no job of the definition can ever save and resume, empty if it may, and notices.

    Only the stack's own role can tell whether it may read, which launch_attempt does before the first launch of a job.
    Buckets of OSS are not known to AWS.
    """
    if definition.checkpoint_uri is None or not definition.checkpoint_uri.startswith("s3://"):
        return "", ()
    if deps.buckets is None or deps.checkpoint_grants is None:
        return "", ()
    bucket = bucket_of(definition.checkpoint_uri)
    try:
        facts = deps.buckets.describe(bucket)
    except PortError as error:
        deps.log.decided("bucket not checked", definition=definition.name, reason=str(error))
        facts = BucketFacts()
    problem = bucket_problem(bucket, facts)
    return problem, () if problem else bucket_notices(bucket, facts, deps.checkpoint_grants)
