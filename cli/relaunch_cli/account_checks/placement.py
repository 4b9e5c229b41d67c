"""Whether jobs of the registered definitions can ever be placed."""

from relaunch.core.checks import Check, is_ok, problem
from relaunch.core.definitions.checkpoint_bucket import BucketFacts, bucket_of, bucket_problem
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.revisions.revision import TaskDefinitionGrants, revision_problem
from relaunch.core.selection.selection import Selection
from relaunch.usecases.plan_jobs import Plan


def check_placement(plan: Plan, grants: TaskDefinitionGrants) -> Check:
    """Check a plan; what its roles, its bucket and quotas lack has checks of its own."""
    name = f"{plan.definition.name}: placement"
    if plan.problem and plan.problem not in _told_elsewhere(plan, grants) and not _is_for_quota(plan.selection):
        see = f"relaunch plan {plan.definition.name}, which says why; change the definition and relaunch apply FILE"
        return problem(name, f"no job can ever be placed: {plan.problem}", see)
    chosen = plan.selection.chosen if plan.selection else None
    if chosen is None:
        return is_ok(name, "nothing offered rejects it for good")
    return is_ok(name, f"now on {chosen.key}")


def _told_elsewhere(plan: Plan, grants: TaskDefinitionGrants) -> tuple[str, ...]:
    roles = revision_problem(plan.revision, grants) if plan.revision else ""
    return roles, _bucket_problem(plan.definition)


def _bucket_problem(definition: JobDefinition) -> str:
    bucket = bucket_of(definition.checkpoint_uri or "")
    return bucket_problem(bucket, BucketFacts(exists=False))


def _is_for_quota(selection: Selection | None) -> bool:
    return selection is not None and selection.last_filter == "quota"
