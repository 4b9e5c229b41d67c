"""Submit jobs: find the definitions of an event, pin their revisions, create their jobs; dispatches are counted."""

from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.definitions.callers import is_listed
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs.effects import RequestLaunch
from relaunch.core.jobs.job import INVOKE, Job, TimelineEntry
from relaunch.core.jobs.state import JobState, Waiting, WaitReason
from relaunch.core.kubernetes.grant_problems import find_grant_problems
from relaunch.core.kubernetes.rules import find_problems, kubernetes_revision
from relaunch.core.lifecycle.decision import LAUNCH_TIMEOUT
from relaunch.core.lifecycle.events import ImageArrived
from relaunch.core.lifecycle.metrics import Metric, MetricDatum, acceptance_metrics
from relaunch.core.lifecycle.waiting import IMAGE_POLL_INTERVAL
from relaunch.core.offerings.instance_types import nearest_names
from relaunch.core.records import dataclass
from relaunch.core.revisions.images import NOT_IN_ECR, FoundImage, with_platforms
from relaunch.core.revisions.revision import Revision, family_problem, revision_problem
from relaunch.core.selection.requirements import container_problem
from relaunch.core.triggers.dispatch_rate import TooManyStarts, admit_dispatch
from relaunch.core.triggers.events import (
    BusEvent,
    DirectRequest,
    ImagePushed,
    ObjectCreated,
    RepositoryDispatch,
    ScheduledTime,
    TriggerEvent,
    WatchedEvent,
    WorkflowDispatch,
    happened_at,
    ordered_at,
    trigger_keys,
)
from relaunch.core.triggers.matching import InvalidInputs, Match, NoMatch, derive_job_id, is_watched, match, with_caller
from relaunch.ports import (
    NoActiveRevisionError,
    PermanentError,
    PortError,
    SubmitDependencies,
    TransientError,
    UnsupportedPatternError,
)
from relaunch.usecases.advance_job import JobLifecycle, advance_job, finish_pending
from relaunch.usecases.complete_event import complete_event
from relaunch.usecases.concurrency_groups import create_job
from relaunch.usecases.count_waiting_jobs import find_reached_limit
from relaunch.usecases.prepare_revision import WantedImage, pin_images

_ATTEMPTS = 5


def find_dispatch_obstacle(event: TriggerEvent, deps: SubmitDependencies) -> str:
    """Count a dispatch and return why it may not start a job, empty if it may; other events are not counted.

    A dispatch counts once, however often it is handled and however many jobs it starts. The count is exact: it is
    saved before the job is created, and only if nobody else saved it in between.

    Raises:
        TransientError: dispatches with the same body were counted at the same time too often; retry.
    """
    if not isinstance(event, WorkflowDispatch | RepositoryDispatch):
        return ""
    for _ in range(_ATTEMPTS):
        found = deps.events.load_dispatch_starts(event.body_sha256)
        admitted = admit_dispatch(found, event.identity, deps.clock.now())
        if isinstance(admitted, TooManyStarts):
            return admitted.reason
        if admitted is found or deps.events.save_dispatch_starts(admitted):
            return ""
    raise TransientError(f"counting {event.identity}: others counted the same body {_ATTEMPTS} times in between")


class UnknownDefinitionError(PermanentError):
    """No job definition of this name is registered."""


class CallerNotListedError(PermanentError):
    """The definition lists the callers of job_api that may start its jobs, and this one is not among them."""


class InvalidInputsError(PermanentError):
    """The inputs do not match the definition."""


class WaitingLimitReachedError(PermanentError):
    """So many jobs wait that no further one is accepted."""


class IdempotentParameterMismatchError(PermanentError):
    """The idempotency key was used with other inputs."""


@dataclass(frozen=True, slots=True)
class Submission:
    """The result of an event for one definition: a job, or in `note` why there is none.

    `is_over_limit`: there is none because too many jobs wait.
    """

    definition: str
    job: Job | None
    note: str
    is_new: bool = False
    is_over_limit: bool = False


def submit_event(event: TriggerEvent, deps: SubmitDependencies) -> tuple[Submission, ...]:
    """Create the jobs of an event; a repeated event returns the same jobs.

    An image push also continues the jobs that wait for the image. The outcome is recorded, even if no job starts; only
    of uploads that no trigger watches nothing is stored, for there may be millions.

    Raises:
        TransientError: a temporary error; the other jobs are created and continued, and nothing is recorded; retry.
        PermanentError: a job cannot be created or continued; the other jobs are.
    """
    if isinstance(event, DirectRequest):
        return (submit_request(event, deps),)
    errors: list[PortError] = []
    if isinstance(event, ImagePushed):
        _continue_waiting(event, deps, errors)
    event = _complete(event, deps)
    source, name = trigger_keys(event)
    found = deps.definitions.find_definitions(source, name)
    if isinstance(event, ObjectCreated) and not is_watched(event, found):
        deps.metrics.record(MetricDatum(Metric.EVENTS_IGNORED))
        deps.log.decided("ignored", identity=event.identity, reason=f"nobody watches s3://{event.bucket}/{event.key}")
        return ()
    submissions = tuple(_submit_separately(definition, event, deps, errors) for definition in found)
    for error in errors:
        if isinstance(error, TransientError):
            raise error
    notes = [f"{each.definition}: {each.note}" for each in submissions]
    outcome = "; ".join(notes) or f"no job definition watches {source} {name}"
    job_ids = [each.job.job_id for each in submissions if each.job is not None]
    deps.events.record_event(event.identity, str(source), outcome, job_ids, deps.clock.now())
    if not job_ids:
        deps.metrics.record(MetricDatum(Metric.EVENTS_IGNORED))
    deps.log.decided("event handled", identity=event.identity, source=str(source), reason=outcome, job_ids=job_ids)
    if errors:
        # A redriven message finds the jobs that were created and creates the others.
        raise errors[0]
    return submissions


def _complete(event: WatchedEvent, deps: SubmitDependencies) -> WatchedEvent:
    return complete_event(event, deps) if isinstance(event, BusEvent | ScheduledTime) else event


def _submit_separately(
    definition: JobDefinition, event: TriggerEvent, deps: SubmitDependencies, errors: list[PortError]
) -> Submission:
    """Submit to one definition; an error does not affect the others."""
    try:
        return _submit(definition, event, deps)
    except PortError as error:
        errors.append(error)
        return Submission(definition.name, None, f"cannot be started: {error}")


def submit_direct(request: DirectRequest, deps: SubmitDependencies) -> Job:
    """Create the job of a direct request; a known idempotency key returns the same job.

    Raises:
        UnknownDefinitionError: no definition has this name; the message has similar names.
        CallerNotListedError: it came through job_api, and the definition lists other callers; the message names none.
        InvalidInputsError: the inputs do not match the definition; the message lists all errors.
        WaitingLimitReachedError: so many jobs wait that no further one is accepted; nothing was stored.
        IdempotentParameterMismatchError: the key was used with other inputs; the message names these inputs.
    """
    job = submit_request(request, deps).job
    if job is None:
        raise PermanentError(f"the request for {request.definition} started nothing")
    return job


def submit_request(request: DirectRequest, deps: SubmitDependencies) -> Submission:
    """Create the job of a direct request and return whether it is new; raises the errors of `submit_direct`."""
    submission = _submit(load_requested(request, deps), request, deps)
    if submission.is_over_limit:
        raise WaitingLimitReachedError(submission.note)
    if submission.job is None:
        raise InvalidInputsError(submission.note)
    _compare_inputs(request, submission.job)
    return submission


def load_requested(request: DirectRequest, deps: SubmitDependencies) -> JobDefinition:
    """Return the job definition of a direct request.

    Raises:
        UnknownDefinitionError: no definition has this name; the message has similar names.
        CallerNotListedError: it came through job_api, and the definition lists other callers; the message names none.
    """
    definition = deps.definitions.load_definition(request.definition)
    if definition is not None:
        _check_caller(request, definition)
        return definition
    near = nearest_names(request.definition, [each.name for each in deps.definitions.list_definitions()])
    hint = f"; did you mean {' or '.join(near)}?" if near else "; register it with `relaunch apply`"
    raise UnknownDefinitionError(f"there is no job definition {request.definition!r}{hint}")


def _check_caller(request: DirectRequest, definition: JobDefinition) -> None:
    if request.through_api and definition.callers and not is_listed(request.caller, definition.callers):
        raise CallerNotListedError(
            f"{request.caller} may not start jobs of {definition.name}, whose definition lists its `callers`: whoever "
            "owns the definition may add the caller there and register it with `relaunch apply`"
        )


def _compare_inputs(request: DirectRequest, job: Job) -> None:
    """Compare the inputs of the caller, without defaults, which may have changed since; values are not repeated."""
    other = [name for name, value in request.inputs.items() if name in job.inputs and job.inputs[name] != value]
    tag = request.retried.image[1] if request.retried and request.retried.image else request.image_tag
    if tag != (job.image[1] if job.image else ""):
        other.append("the image's tag")
    if (request.retried.resume_from if request.retried else ()) != job.resume_from:
        other.append("the checkpoint")
    if other:
        raise IdempotentParameterMismatchError(
            f"this idempotency key started job {job.job_id} with other values of {', '.join(other)}; use another key"
        )


def match_event(
    definition: JobDefinition, event: TriggerEvent, deps: SubmitDependencies
) -> Match | NoMatch | InvalidInputs:
    """Return whether an event starts a job of a definition, and with which inputs.

    Raises:
        UnsupportedPatternError: a pattern of the definition cannot be matched; the message says what to do.
    """
    try:
        return match(definition, event, deps.patterns.matches)
    except UnsupportedPatternError as error:
        advice = "change the pattern and register the definition with `relaunch apply`"
        raise UnsupportedPatternError(f"inputs of {definition.name} cannot be checked: {error}; {advice}") from error


def _submit(definition: JobDefinition, event: TriggerEvent, deps: SubmitDependencies) -> Submission:
    matched = match_event(definition, event, deps)
    if isinstance(matched, NoMatch | InvalidInputs):
        return Submission(definition.name, None, matched.reason)
    through_api = isinstance(event, DirectRequest) and event.through_api
    # Whoever may call the function itself is limited by no name.
    caller = event.caller if isinstance(event, DirectRequest) and through_api and event.caller != INVOKE else ""
    job_id = derive_job_id(event.identity, definition.name)
    job_id = with_caller(job_id, caller) if caller else job_id
    existing = deps.jobs.load_job(job_id)
    if existing is not None:
        return Submission(definition.name, finish_pending(existing, deps), f"job {job_id} is there already")
    reached = find_reached_limit(definition, deps, through_api=through_api, caller=caller)
    if reached:
        deps.metrics.record(MetricDatum(Metric.JOBS_REJECTED))
        return Submission(definition.name, None, reached, is_over_limit=True)
    obstacle = find_dispatch_obstacle(event, deps)
    if obstacle:
        return Submission(definition.name, None, obstacle)
    job, entries = _accept(job_id, definition, matched, event, deps)
    created = create_job(job, entries, ordered_at(event), deps)
    if created is None:
        return Submission(definition.name, deps.jobs.load_job(job_id), f"job {job_id} is there already")
    job = created
    deps.log.decided("accepted", job_id=job_id, revision=job.revision.arn, reason=job.reason, state=str(job.state))
    deps.metrics.record(*acceptance_metrics(job))
    job = JobLifecycle(deps).follow(replace(job, version=1))
    note = f"job {job_id} is {job.reason}" if job.state is JobState.CANCELLED else f"started job {job_id}"
    return Submission(definition.name, job, note, is_new=True)


def _accept(
    job_id: str, definition: JobDefinition, matched: Match, event: TriggerEvent, deps: SubmitDependencies
) -> tuple[Job, tuple[TimelineEntry, ...]]:
    now = deps.clock.now()
    if refused := definition_problem(definition, deps):
        return _refuse(_new_job(job_id, definition, matched, _no_revision(definition), now), refused)
    try:
        revision = _newest_revision(definition, event, deps)
    except NoActiveRevisionError as error:
        return _refuse(_new_job(job_id, definition, matched, _no_revision(definition), now), str(error))
    resume_from = event.retried.resume_from if isinstance(event, DirectRequest) and event.retried else ()
    job = replace(_new_job(job_id, definition, matched, revision, now), resume_from=resume_from)
    if problem := _revision_problem(job, deps):
        return _refuse(job, problem)
    wanted = _wanted_image(matched, event, deps)
    pinned = pin_images(revision, wanted, deps.images)
    if problem := pinned.problem or _missing_image(matched, wanted):
        return _refuse(job, problem)
    job = replace(job, images=pinned.images, revision=with_platforms(revision, pinned.platforms))
    chosen = f"{matched.facts.summary}; {_describe_revision(definition, revision)}"
    accepted = _entry(job, "accepted", "; ".join((chosen, *pinned.notes)))
    if matched.image is not None and wanted is not None and wanted.found is None:
        return _wait_for_image(job, matched, now), (accepted, _entry(job, "waiting for image", ":".join(matched.image)))
    waiting = Waiting(WaitReason.LAUNCH, now, "its launch is in the attempts queue")
    pending = (RequestLaunch(),)
    return replace(job, waiting=waiting, wake_at=now + LAUNCH_TIMEOUT, pending=pending), (accepted,)


def definition_problem(definition: JobDefinition, deps: SubmitDependencies) -> str:
    """Return why the stack can launch no job of a definition, and what to change; empty if it can."""
    problem = deps.targets.problem(definition.target, definition.checkpoint_uri)
    problem = problem or "; ".join(map(str, find_problems(definition)))
    if problem:
        return problem
    if definition.target.capabilities.takes_task_definition:
        return family_problem(definition.task_definition, deps.limits.task_definitions)
    return "; ".join(map(str, find_grant_problems(definition, deps.limits.pods)))


def _newest_revision(definition: JobDefinition, event: TriggerEvent, deps: SubmitDependencies) -> Revision:
    if not definition.target.capabilities.takes_task_definition:
        return kubernetes_revision(definition)
    return deps.revisions.newest_active(definition.task_definition, happened_at(event))


def _revision_problem(job: Job, deps: SubmitDependencies) -> str | None:
    is_checked = job.definition.target.capabilities.takes_task_definition
    problem = revision_problem(job.revision, deps.limits.task_definitions) if is_checked else ""
    return problem or container_problem(job.definition, job.revision)


def _describe_revision(definition: JobDefinition, revision: Revision) -> str:
    if not definition.target.capabilities.takes_task_definition:
        return f"a Job on {definition.target} with {revision.containers[0].image}"
    return f"pinned {revision.family}:{revision.revision}"


def _wanted_image(matched: Match, event: TriggerEvent, deps: SubmitDependencies) -> WantedImage | None:
    """Return the image that the job waits for, whose push started it, or that a request names."""
    if isinstance(event, ImagePushed):
        return WantedImage(event.repository, event.tag, _pushed_image(event, deps))
    if matched.image is None:
        return None
    return WantedImage(*matched.image, deps.images.find_image(*matched.image))


def _missing_image(matched: Match, wanted: WantedImage | None) -> str:
    """Return that the image is missing which a request names; an event of GitHub waits for its image."""
    if wanted is None or wanted.found is not None or matched.image_timeout is not None:
        return ""
    return f"the image {wanted.repository}:{wanted.tag} {NOT_IN_ECR}: push it first"


def _pushed_image(event: ImagePushed, deps: SubmitDependencies) -> FoundImage:
    """Return the pushed image by its digest, with unknown platforms if ECR does not return them."""
    try:
        found = deps.images.find_image(event.repository, event.digest)
    except PortError as error:
        return FoundImage(event.digest, unknown=str(error))
    return found or FoundImage(event.digest, unknown="it is not in ECR any more")


def _refuse(job: Job, reason: str) -> tuple[Job, tuple[TimelineEntry, ...]]:
    failed = replace(job, state=JobState.FAILED, reason=reason, ended_at=job.accepted_at)
    return failed, (_entry(failed, "failed", reason),)


def _wait_for_image(job: Job, matched: Match, now: datetime) -> Job:
    repository, tag = matched.image or ("", "")
    until = now + (matched.image_timeout or timedelta(0))
    waiting = Waiting(WaitReason.IMAGE, now, f"waiting for image {repository}:{tag}", until)
    return replace(job, waiting=waiting, reason=waiting.detail, wake_at=min(until, now + IMAGE_POLL_INTERVAL))


def _new_job(job_id: str, definition: JobDefinition, matched: Match, revision: Revision, now: datetime) -> Job:
    return Job(
        job_id,
        definition,
        matched.facts,
        revision,
        accepted_at=now,
        inputs=matched.inputs,
        state_since=now,
        image=matched.image,
    )


def _no_revision(definition: JobDefinition) -> Revision:
    return Revision("", definition.task_definition or definition.name, 0, ())


def _entry(job: Job, event: str, detail: str) -> TimelineEntry:
    return TimelineEntry(job.accepted_at, job.state, event, detail)


def _continue_waiting(event: ImagePushed, deps: SubmitDependencies, errors: list[PortError]) -> None:
    waiting = deps.jobs.load_waiting_for_image(event.repository, event.tag)
    if not waiting:
        return
    arrived = ImageArrived(event.repository, event.tag, _pushed_image(event, deps))
    for job_id in waiting:
        try:
            advance_job(job_id, lambda _job: arrived, deps)
        except PortError as error:
            errors.append(error)
