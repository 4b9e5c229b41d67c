"""Plan where jobs of definitions, or of a direct request, would run now, without launching or storing anything."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.checkpoint_bucket import BucketFacts, bucket_notices, bucket_of, bucket_problem
from relaunch.core.definitions.credentials import find_credential_notices
from relaunch.core.definitions.definition import JobDefinition, image_repositories
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.trigger_facts import TriggerFacts
from relaunch.core.kubernetes.acs_drivers import AcsDrivers, find_driver_notices, find_strict_problems
from relaunch.core.kubernetes.grant_problems import find_grant_problems
from relaunch.core.kubernetes.node_fit import GpuNode, NodeFit
from relaunch.core.kubernetes.node_labels import NodeLabels
from relaunch.core.kubernetes.rules import find_kubernetes_notices, find_problems, kubernetes_revision, predict_job_fit
from relaunch.core.lifecycle.market_choice import MarketChoice, follows_market, narrow
from relaunch.core.lifecycle.market_notices import deadline_notices, with_awaited
from relaunch.core.lifecycle.paces import Pace, on_demand_paces
from relaunch.core.lifecycle.spot_pools import retried_sooner
from relaunch.core.machines.machine import FleetRequest
from relaunch.core.machines.request import build_request
from relaunch.core.market.thresholds import Thresholds
from relaunch.core.offerings.instance_types import nearest_names
from relaunch.core.records import dataclass
from relaunch.core.revisions.images import parse_ecr_image, with_platforms
from relaunch.core.revisions.revision import Revision, StopTimeout, family_problem, find_stop_timeout, revision_problem
from relaunch.core.selection.notices import find_notices, refuse_unmeasured
from relaunch.core.selection.requirements import container_problem
from relaunch.core.selection.selection import Selection, explain_rejection, select
from relaunch.core.triggers.events import DirectRequest
from relaunch.core.triggers.matching import InvalidInputs, NoMatch
from relaunch.ports import (
    ImageSource,
    NoActiveRevisionError,
    PlanDependencies,
    PortError,
    RequestDependencies,
    ZoneScoreSource,
)
from relaunch.usecases.follow_market import choose_market
from relaunch.usecases.load_offerings import AvailableOfferings, load_offerings, with_placement_scores, with_rates
from relaunch.usecases.prepare_revision import pin_images
from relaunch.usecases.submit_job import InvalidInputsError, definition_problem, load_requested, match_event


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


_NO_PRICES = "the prices of the cluster are not known: it places the pod, and no cost is estimated"


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a definition at `at`; `revision` is None if task definitions are not read.

    `problem` says why a job can never run, empty if it can; `is_unsatisfiable`: no offering satisfies the definition.
    `market` is what its market policy would choose for a job that is accepted now, None if it has none or its work is
    not known: `selection` keeps what that choice would be launched on. `image_doubts` describe what is unknown of its
    images, `bucket_notices` what its checkpoints may lack, and `driver_notices` what is doubtful about its driver on
    ACS. `request` is what EC2 would be asked for, None if another way to a machine is better or the only one.
    `fits` says of each node of a cluster whether the pod fits, None if the cluster was not asked, or no node can tell.
    `save_notices` say how often it should save, as far as its jobs have measured what a save takes.
    `quota_problem` says why nothing of the selection can start now for want of a quota that selection does not know.
    `paces` are those of on-demand machines, where there is a deadline: the fastest says whether it is promised.
    """

    definition: JobDefinition
    at: datetime
    revision: Revision | None
    selection: Selection | None
    problem: str = ""
    is_unsatisfiable: bool = False
    image_doubts: tuple[str, ...] = ()
    bucket_notices: tuple[str, ...] = ()
    driver_notices: tuple[str, ...] = ()
    request: FleetRequest | None = None
    market: MarketChoice | None = None
    fits: tuple[NodeFit, ...] | None = None
    quota_problem: str = ""
    save_notices: tuple[str, ...] = ()
    paces: tuple[Pace | None, ...] = (None,)

    @property
    def notices(self) -> tuple[str, ...]:
        """Return the notices about the definition, its images and its checkpoints.

        Where the job would wait they are about what it waits for.
        """
        return (*find_credential_notices(self.definition), *self._notices_of_target)

    @property
    def _notices_of_target(self) -> tuple[str, ...]:
        if not self.definition.target.capabilities.offers_instance_types:
            found = () if self.problem else find_kubernetes_notices(self.definition)
            return (*found, *self.driver_notices, *self.bucket_notices, _NO_PRICES)
        promised = deadline_notices(self.definition, self.market, self.paces)
        found = find_notices(self.definition, self.revision, self.selection and with_awaited(self.selection))
        short = (self.quota_problem,) if self.quota_problem else ()
        return (*short, *promised, *found, *self.image_doubts, *self.bucket_notices, *self.save_notices)

    @property
    def stop_timeout(self) -> StopTimeout | None:
        """Return the time from SIGTERM to SIGKILL; None if the main container is not known."""
        return find_stop_timeout(self.definition, self.revision) if self.revision else None


def refuse_unmeasured_deadlines(plans: Iterable[Plan]) -> list[Plan]:
    """Return the plans of what is to be registered, with why nobody can promise a deadline as their problem.

    What an earlier version has registered goes on: of that it is a notice.
    """
    return [
        replace(each, problem=each.problem or refuse_unmeasured(each.definition, each.revision, each.selection))
        for each in plans
    ]


def plan_jobs(definitions: Iterable[JobDefinition], deps: PlanDependencies, zones: Collection[str] = ()) -> list[Plan]:
    """Return the plan of every definition for the current offerings, those of `zones` if given.

    Raises:
        TransientError: prices or a revision are temporarily unavailable.
    """
    definitions = tuple(definitions)
    priced = [each for each in definitions if each.target.capabilities.offers_instance_types]
    plans = {plan.definition.name: plan for plan in _plan_on_ecs(priced, deps, zones)} if priced else {}
    plans |= {each.name: _plan_on_kubernetes(each, deps) for each in definitions if each.name not in plans}
    return [plans[each.name] for each in definitions]


def _plan_on_ecs(
    definitions: Iterable[JobDefinition], deps: PlanDependencies, zones: Collection[str]
) -> Iterator[Plan]:
    definitions = tuple(definitions)
    options = {option for each in definitions for option in each.purchase.options}
    available = in_zones(load_offerings(deps, options=options), zones)
    for definition in definitions:
        if problem := family_problem(definition.task_definition, deps.limits.task_definitions):
            yield Plan(definition, available.at, None, None, problem)
            continue
        try:
            revision = deps.revisions.newest_active(definition.task_definition)
        except NoActiveRevisionError as error:
            yield Plan(definition, available.at, None, None, f"{error}{_similar_family(definition, deps)}")
            continue
        revision, notes = _look_up_images(definition, revision, deps.images)
        known = with_rates(available, definition, deps)
        plan = with_request(plan_on(known, definition, revision, deps.zone_scores, deps.load_thresholds), deps)
        bucket_problem, notices = check_bucket(definition, deps)
        problem = plan.problem or revision_problem(revision, deps.limits.task_definitions) or bucket_problem
        yield replace(plan, problem=problem, image_doubts=notes, bucket_notices=notices)


def _similar_family(definition: JobDefinition, deps: PlanDependencies) -> str:
    """Return the families of registered definitions that are called like one that is not there; empty if none is.

    Those of the whole account would take a permission of their own to list.
    """
    known = {each.task_definition for each in deps.definitions.list_definitions()} - {"", definition.task_definition}
    near = nearest_names(definition.task_definition, known)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _plan_on_kubernetes(definition: JobDefinition, deps: PlanDependencies) -> Plan:
    plan = plan_on_kubernetes(definition, deps.clock.now(), deps.acs_drivers)
    refused = "; ".join(map(str, find_grant_problems(definition, deps.limits.pods)))
    problem, notices = check_bucket(definition, deps)
    return replace(plan, problem=plan.problem or refused or problem, bucket_notices=notices)


def with_fit(plan: Plan, nodes: Sequence[GpuNode], labels: NodeLabels | None = None) -> Plan:
    """Return the plan of a definition for a cluster with what its nodes say of its pod.

    `labels` are those that the stack names.
    """
    return plan if plan.problem else replace(plan, fits=predict_job_fit(plan.definition, nodes, labels))


def plan_on_kubernetes(definition: JobDefinition, at: datetime, drivers: AcsDrivers | None) -> Plan:
    """Return the plan of a definition for a cluster: nothing is selected, for the cluster places its pod.

    Without a list of `drivers` nothing is said of the driver.
    """
    problems = find_problems(definition) + (find_strict_problems(definition, drivers) if drivers else ())
    notices = find_driver_notices(definition, drivers) if drivers and not problems else ()
    revision = None if definition.kubernetes is None else kubernetes_revision(definition)
    return Plan(
        definition,
        at,
        revision,
        None,
        "; ".join(map(str, problems)),
        is_unsatisfiable=bool(problems),
        driver_notices=notices,
    )


def _look_up_images(
    definition: JobDefinition, revision: Revision, images: ImageSource
) -> tuple[Revision, tuple[str, ...]]:
    """Return the revision with the platforms of its images, and notes on what is unknown.

    Images of triggers are skipped: jobs run the image of their event.
    """
    brought = image_repositories(definition)
    kept = [
        each
        for each in revision.containers
        if (image := parse_ecr_image(each.image)) is None or image.repository not in brought
    ]
    try:
        pinned = pin_images(replace(revision, containers=tuple(kept)), None, images)
    except PortError as error:
        return revision, (f"the platforms of its images are not known: {error}",)
    notes = (f"{pinned.problem}: a job would fail now",) if pinned.problem else pinned.unknown
    return with_platforms(revision, pinned.platforms), notes


def plan_on(
    available: AvailableOfferings,
    definition: JobDefinition,
    revision: Revision | None,
    score: ZoneScoreSource | None = None,
    load_thresholds: Callable[[], Thresholds] | None = None,
) -> Plan:
    """Return the plan of a definition for these offerings; without a revision only the definition is checked.

    Spot placement scores are requested for the types that satisfy the definition, because EC2 scores a set of types as
    a whole. Without thresholds no market policy is asked: offline, where spot prices are not known.
    """
    memory = retried_sooner(available.memory) if follows_market(definition) else available.memory
    selection = select(definition, revision, available.offerings, memory, available.at, available.limits)
    spot = {each.instance_type.name for each in selection.kept if each.purchase is PurchaseOption.SPOT}
    if score is not None and spot:
        offerings = with_placement_scores(available.offerings, score, spot)
        selection = select(definition, revision, offerings, memory, available.at, available.limits)
    problem = container_problem(definition, revision) if revision is not None and revision.containers else None
    if problem is None and selection.is_permanent:
        return Plan(definition, available.at, revision, selection, explain_rejection(selection), is_unsatisfiable=True)
    paces = (None,) if definition.deadline is None else on_demand_paces(selection)
    plan = Plan(definition, available.at, revision, selection, problem or "", paces=paces)
    return _with_market(plan, selection, available, load_thresholds) if load_thresholds else plan


def _with_market(
    plan: Plan, selection: Selection, available: AvailableOfferings, load_thresholds: Callable[[], Thresholds]
) -> Plan:
    """Return the plan with what the market policy of its definition would choose for a job that is accepted now."""
    definition = plan.definition
    revision = plan.revision or Revision("", definition.task_definition, 0, ())
    job = Job("", definition, TriggerFacts("", "", ""), revision, available.at)
    market = choose_market(job, None, selection, available, load_thresholds)
    return plan if market is None else replace(plan, selection=narrow(selection, market), market=market)


def with_request(plan: Plan, deps: PlanDependencies) -> Plan:
    """Return the plan with the request that a job would send to EC2, if a machine of our own is the best choice.

    A job that finds room on a machine that runs already requests none.
    """
    selection = plan.selection
    if selection is None or selection.chosen is None or not selection.chosen.is_own_machine:
        return plan
    nodes = plan.definition.nodes
    request = build_request(
        selection, "", "", "", deps.machine_settings, deps.limits.machines, gang_size=nodes if nodes > 1 else 0
    )
    return replace(plan, request=request and replace(request, size=nodes))


def in_zones(available: AvailableOfferings, zones: Collection[str]) -> AvailableOfferings:
    """Return the offerings of these zones; all offerings if `zones` is empty."""
    if not zones:
        return available
    return replace(available, offerings=tuple(each for each in available.offerings if each.zone in zones))


def plan_submission(request: DirectRequest, deps: RequestDependencies) -> Plan:
    """Return the plan of the job that a direct request would create now.

    The limit of waiting jobs and idempotency keys are not looked at: a plan is about where a job would run.

    Raises:
        UnknownDefinitionError: no definition has this name; the message has similar names.
        CallerNotListedError: it came through job_api, and the definition lists other callers; the message names none.
        InvalidInputsError: the inputs do not match the definition; the message lists all errors.
        TransientError: prices or a revision are temporarily unavailable.
    """
    definition = load_requested(request, deps)
    matched = match_event(definition, request, deps)
    if isinstance(matched, NoMatch | InvalidInputs):
        raise InvalidInputsError(matched.reason)
    (plan,) = plan_jobs([definition], deps)
    return replace(plan, problem=definition_problem(definition, deps) or plan.problem)
