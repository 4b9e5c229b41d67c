"""Bugs in what people are shown, and in when what is asked for is done."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

from relaunch.adapters.aws.sqs import batch
from relaunch.adapters.definition_file import writer
from relaunch.core.definitions import schedule_expression
from relaunch.core.definitions.accelerator import Accelerators
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs import quota_use
from relaunch.core.kubernetes import acs, acs_checks, acs_profile, pod_fragment
from relaunch.core.kubernetes.rules import kubernetes_revision
from relaunch.core.messages import dead_letter, handling_order
from relaunch.core.notices import samples
from relaunch.core.offerings.offering import Offering
from relaunch.core.revisions.revision import Revision
from relaunch.core.selection import notices, offering_filters, offering_table, selection
from relaunch.core.selection.instance_type_filters import TYPE_FILTERS
from relaunch.core.selection.offering_table import rank_key
from relaunch.core.selection.rejection import Rejection
from relaunch.entrypoints import attempts, intake, job_api, machines, task_changes, warnings
from relaunch.entrypoints import notices as sending
from relaunch.usecases import dead_letters, plan_jobs
from relaunch_local.simulation import applying, workload
from relaunch_local.simulation.aws import lambda_functions
from relaunch_local.simulation.checks import dying_batches, learned_speeds
from simulation.broken_parts import Planting, changed, replaced
from simulation.planted_bugs import PlantedBug
from simulation.planting import patched, patched_in, writes

_UNKNOWN = partial(dead_letter.DeadLetterCause, dead_letter.GivenUpBy.UNKNOWN, "nothing says why it is here")


class _BugError(Exception):
    """Whatever a function raises that it should not."""


def _fails(*_arguments: object, **_named: object) -> Any:
    raise _BugError


def _handled_at_the_third_try(module: Any) -> Planting:
    original: Callable[[str, Any], Any] = module.handle_message

    def plant() -> AbstractContextManager[object]:
        tries: dict[str, int] = {}

        def handle(body: str, deps: Any) -> Any:
            tries[body] = tries.get(body, 0) + 1
            if tries[body] < 3:
                raise _BugError
            return original(body, deps)

        return patched(module, handle_message=handle)

    return plant


def _without_name(selector: acs_profile.Selector, driver: str) -> dict[str, Any]:
    return {**selector.document, "effect": {"labels": {"driver": driver}}}


def _reasons_lost(function: Callable[..., Rejection | None]) -> Callable[..., Rejection | None]:
    def reject(*arguments: Any) -> Rejection | None:
        found = function(*arguments)
        return None if found is None else replace(found, reason="")

    return reject


def _without_gpus(definition: JobDefinition) -> Revision:
    revision = kubernetes_revision(definition)
    return replace(revision, containers=tuple(replace(each, gpu_count=0) for each in revision.containers))


def _dearest_first(offering: Offering, zone_count: int) -> Any:
    first, *others = rank_key(offering, zone_count)
    return (-first, *others)


def _detail_lost() -> AbstractContextManager[object]:
    def change(_job: Any, decision: Any) -> Any:
        timeline = tuple(replace(each, detail=f"{None}: {each.detail}") for each in decision.timeline)
        return replace(decision, timeline=timeline)

    return writes(change)


PEOPLE_BUGS = (
    PlantedBug(
        "event-handled-late",
        "the function that makes jobs of events fails twice with each",
        _handled_at_the_third_try(intake),
        "what happens becomes a job in time",
    ),
    PlantedBug(
        "launch-late",
        "the function that launches fails twice with each launch",
        _handled_at_the_third_try(attempts),
        "a launch that is due is made in time",
    ),
    PlantedBug(
        "machine-asked-for-late",
        "the function that asks EC2 for machines fails twice with each",
        _handled_at_the_third_try(machines),
        "a machine that is due is asked for in time",
    ),
    PlantedBug(
        "warning-heeded-late",
        "the function that handles warnings fails twice with each",
        _handled_at_the_third_try(warnings),
        "a message of EC2 on an instance is handled in time",
    ),
    PlantedBug(
        "task-change-heeded-late",
        "the function that handles changes of tasks fails twice with each",
        _handled_at_the_third_try(task_changes),
        "a message of ECS on a task is handled in time",
    ),
    PlantedBug(
        "notice-late",
        "the function that sends notices fails twice with each event",
        _handled_at_the_third_try(sending),
        "a notice is sent in time",
        20,
    ),
    PlantedBug(
        "schedule-never-done",
        "the schedule of every minute ends with an error",
        changed(lambda_functions, reconcile=_fails),
        "the schedule comes to its end in time",
    ),
    PlantedBug(
        "cancellation-unanswered",
        "who cancels a job gets no answer",
        changed(job_api, cancel_job=_fails),
        "who asks for something has an answer in time",
    ),
    PlantedBug(
        "deliveries-not-taken",
        "the webhook takes nothing",
        changed(workload, handle_request=_fails),
        "what GitHub sends is taken in time",
    ),
    PlantedBug(
        "dead-letters-unlisted",
        "the dead letters cannot be listed",
        changed(dead_letters, list_dead_letters=_fails),
        "who repeats a command gets what it is for",
        40,
    ),
    PlantedBug(
        "another-owner-each-time",
        "each session of a role is another owner of what it applies",
        changed(applying, caller_of=lambda arn: arn),
        "who applies a file again has it applied",
        40,
    ),
    PlantedBug(
        "detail-lost",
        "an entry of the timeline is written with a value that is missing",
        _detail_lost,
        "no text has a hole",
    ),
    PlantedBug(
        "rates-unread",
        "any rate is taken for one that Scheduler takes",
        changed(schedule_expression, _find_rate_problem=lambda _number, _unit: ""),
        "a schedule that Scheduler refuses is refused before",
    ),
    PlantedBug(
        "days-without-names",
        "the names of the days of the week are not known",
        changed(schedule_expression, _DAYS=(), _FIELDS=schedule_expression._FIELDS[:4]),
        "a schedule that Scheduler takes is taken",
    ),
    PlantedBug(
        "weeks-from-monday",
        "the days of the week are counted from Monday",
        changed(schedule_expression, _is_weekday=lambda day, _text, numbers: day.isoweekday() in numbers),
        "the time that is shown of a schedule is when Scheduler sends next",
    ),
    PlantedBug(
        "every-node-is-ready",
        "virtual nodes of ACS that are not ready are taken for ready",
        changed(acs_checks, _check_ready=lambda name, _nodes, text: acs_checks.is_ok(name, text)),
        "whoever has a cluster checked learns what it lacks",
    ),
    PlantedBug(
        "nothing-to-do",
        "what to install in a cluster without virtual nodes is not said",
        changed(acs_checks, _INSTALL=""),
        "whoever has a cluster checked learns what to do",
    ),
    PlantedBug(
        "default-of-another",
        "the selector of a default driver is not found again",
        changed(acs_profile, _find=lambda _selectors, _pods: None),
        "a default driver of ACS is that of its pods",
    ),
    PlantedBug(
        "default-stays",
        "a default driver that is removed leaves its selector",
        changed(acs_profile.Selector, with_driver=_without_name),
        "a default driver of ACS that is removed leaves the others",
    ),
    PlantedBug(
        "durations-written-as-hours",
        "every duration of a definition is written as one hour",
        changed(writer, write_duration=lambda _duration: "1h"),
        "a definition that is written to a file is read as it was",
    ),
    PlantedBug(
        "any-dns",
        "pods that must meet by name may have any policy of DNS",
        changed(pod_fragment, _CLUSTER_DNS=frozenset({"ClusterFirst", "Default"})),
        "a mistake in a file is shown where it is",
    ),
    PlantedBug(
        "no-dns",
        "pods that must meet by name may have no policy of DNS",
        changed(pod_fragment, _CLUSTER_DNS=frozenset()),
        "a file that is right is read",
    ),
    PlantedBug(
        "no-effect-unsaid",
        "what does nothing on a cluster is not said to",
        changed(plan_jobs, find_kubernetes_notices=lambda _definition: ()),
        "what does nothing on a cluster is said to",
    ),
    PlantedBug(
        "shares-for-all",
        "the pod of a job for a cluster has no GPU of its own",
        changed(plan_jobs, kubernetes_revision=_without_gpus),
        "a plan for a cluster asks for the GPUs of its job",
    ),
    PlantedBug(
        "rejections-lost",
        "a plan forgets the first of what it rejects",
        changed(selection, _rank_rejections=lambda rejected: tuple(rejected[1:])),
        "a plan has everything that is on sale once",
    ),
    PlantedBug(
        "memory-per-gpu-unread",
        "the memory that a job needs per GPU rejects no instance type",
        changed(selection, TYPE_FILTERS=tuple(each for each in TYPE_FILTERS if each[0] != "memory-per-card")),
        "a plan has what fits a job and may be bought, and nothing else",
    ),
    PlantedBug(
        "plan-without-notices",
        "a plan fails once its notices are read",
        changed(notices, _torchrun=_fails),
        "who plans a job gets a plan",
    ),
    PlantedBug(
        "rejections-without-words",
        "an offering that is not bought in the right way is rejected without a reason",
        changed(
            selection,
            GROUP_FILTERS=tuple((name, _reasons_lost(check)) for name, check in offering_filters.GROUP_FILTERS),
        ),
        "a plan says why with all that it says",
    ),
    PlantedBug(
        "plan-from-the-dearest",
        "a plan begins with what is dearest",
        changed(offering_table, rank_key=_dearest_first),
        "a plan begins with what is cheapest",
    ),
    PlantedBug(
        "machines-take-no-vcpus",
        "the vCPUs of machines of the stack's own are not counted against quotas",
        changed(quota_use, _vcpus_of=lambda _machine: {}),
        "a plan leaves to machines that run what they take of a quota",
    ),
    PlantedBug(
        "no-family-is-near",
        "the family that a typing error was meant to name is not named",
        changed(plan_jobs, _similar_family=lambda _definition, _deps: ""),
        "who names a family wrongly learns what is wrong",
    ),
    PlantedBug(
        "rounding-unsaid",
        "that ACS rounds a share of a GPU up is not said",
        replaced(acs, "_ask_share", lambda ask: lambda *of: replace(ask(*of), notices=())),
        "a share that ACS rounds up is said to",
    ),
    PlantedBug(
        "undelivered-for-no-reason",
        "a dead letter of EventBridge is taken for one that says nothing",
        changed(dead_letter, _explain_undelivered_event=lambda message: _UNKNOWN(None, message.sent_at)),
        "who looks at a dead letter learns who gave it up, and why",
    ),
    PlantedBug(
        "handled-as-they-came",
        "the messages of a batch are handled in the order in which SQS hands them out",
        lambda: patched_in(
            (handling_order, batch, dying_batches), order_messages=lambda messages, _last: list(range(len(messages)))
        ),
        "a message that functions die of makes no other one a dead letter",
    ),
    PlantedBug(
        "test-of-a-machine-of-no-kind",
        "the notice with which a receiver is tried out names no purchase option",
        changed(samples, EventMachine=lambda **named: _machine({**named, "purchase": "a loan"})),
        "a receiver that is tried out gets an event as real ones are",
    ),
    PlantedBug(
        "test-twice-the-same",
        "the notice with which a receiver is tried out has the same identity each time",
        changed(samples, JobStateChange=lambda **named: _event({**named, "id": "test-00000000:1-1"})),
        "a receiver that is tried out twice gets two events",
    ),
    PlantedBug(
        "accelerators-unread",
        "how many accelerators a speed was measured on is not read",
        changed(learned_speeds, read_accelerators=Accelerators),
        "a speed is found again under what it was measured on",
    ),
)

_machine_type = samples.EventMachine
_event_type = samples.JobStateChange


def _machine(members: Mapping[str, Any]) -> Any:
    return _machine_type(**members)


def _event(members: Mapping[str, Any]) -> Any:
    return _event_type(**members)
