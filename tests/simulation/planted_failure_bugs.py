"""Bugs in what follows an error of a start, a fault of a machine, or a program that fails soon after its start."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from relaunch.adapters.aws.ecs import stop_reports
from relaunch.adapters.start_errors import meaning_of
from relaunch.core.jobs.attempt import Stop
from relaunch.core.jobs.job import Faults
from relaunch.core.launches.launch import ReportedCause
from relaunch.core.lifecycle import refusal_waits, restart_policy, stopping, verdicts
from relaunch.usecases import advance_job as advancing
from relaunch_local.simulation import account
from simulation.broken_parts import changed, replaced
from simulation.planted_bugs import PlantedBug
from simulation.planting import patched


def _meant_as(wrong: ReportedCause | None, instead_of: ReportedCause) -> Callable[[str], ReportedCause | None]:
    def mean(reason: str) -> ReportedCause | None:
        meaning = meaning_of(reason)
        return wrong if meaning is instead_of else meaning

    return mean


def _without_exit_codes(original: Callable[..., Stop]) -> Callable[..., Stop]:
    def classify(*given: Any, **named: Any) -> Stop:
        return original(*given, **{**named, "machine_exit_codes": frozenset()})

    return classify


def _small_groups() -> AbstractContextManager[object]:
    """Let each group have one machine at most, so that most jobs wait for one that others use."""
    original = account.provision
    return patched(account, provision=lambda region, scenario: original(region, replace(scenario, group_size=1)))


FAILURE_BUGS = (
    PlantedBug(
        "full-group-is-no-capacity",
        "a group whose machines run other tasks counts as one without capacity",
        changed(advancing, _is_used=lambda *_given: False),
        "a full group is no lesson on spot",
        20,
        first=33,
        world=_small_groups,
    ),
    PlantedBug(
        "free-machine-not-offered",
        "the jobs that wait for a machine of a full group are not told when one is free",
        changed(advancing, offer_machine=lambda *_given: None),
        "no job waits for capacity beside a machine of a full group that is free",
        20,
        first=70,
        world=_small_groups,
    ),
    PlantedBug(
        "known-error-tried-again",
        "an error that is the same everywhere is one that nobody knows",
        changed(stop_reports, meaning_of=_meant_as(None, ReportedCause.STARTS_NOWHERE)),
        "an error that is the same everywhere costs one machine",
        60,
    ),
    PlantedBug(
        "words-of-the-error-dropped",
        "a job that starts nowhere does not say with which error",
        changed(restart_policy, describe_stop=lambda _stop, _target: "it failed"),
        "a job that starts nowhere ends with the words of the error",
        60,
    ),
    PlantedBug(
        "outage-taken-for-an-error-everywhere",
        "a registry that is out of reach for minutes ends the job",
        changed(stop_reports, meaning_of=_meant_as(ReportedCause.STARTS_NOWHERE, ReportedCause.UNREACHABLE)),
        "every end is deserved",
        60,
    ),
    PlantedBug(
        "refused-start-tried-again",
        "what somebody has to grant is taken for what is over in minutes",
        changed(stop_reports, meaning_of=_meant_as(ReportedCause.UNREACHABLE, ReportedCause.START_REFUSED)),
        "no more machines than probes are tried for a refused start",
        60,
    ),
    PlantedBug(
        "refused-start-ends-the-job",
        "what somebody may grant is taken for an error that stays",
        changed(stop_reports, meaning_of=_meant_as(ReportedCause.STARTS_NOWHERE, ReportedCause.START_REFUSED)),
        "every end is deserved",
        60,
    ),
    PlantedBug(
        "refused-start-tried-once-a-day",
        "a job whose start is refused is tried again after a day, although it is granted within the hour",
        changed(refusal_waits, PROBES_AFTER=()),
        "a job goes on by its next probe once it may",
        60,
    ),
    PlantedBug(
        "faulty-machine-used-again",
        "a job is kept from no machine that did not start it, or failed under it",
        changed(Faults, avoided_instances=()),
        "after a fault of its machine a job goes to another one",
        60,
    ),
    PlantedBug(
        "unknown-words-in-the-same-pool",
        "words that nobody knows are tried again in the pool where they came",
        changed(stopping, _avoid_pool=lambda job, _reason, _at: job),
        "words that nobody knows are tried in another pool",
        60,
    ),
    PlantedBug(
        "unknown-words-on-a-third-machine",
        "words that nobody knows are tried on three machines",
        changed(stopping, UNKNOWN_STARTS=3),
        "words that nobody knows cost two machines",
        60,
    ),
    PlantedBug(
        "gpu-fault-is-the-programs",
        "a program that a fault of its GPU ended has failed",
        changed(stop_reports, tells_gpu_fault=lambda _text: False),
        "a stop's reason is its cause",
        60,
    ),
    PlantedBug(
        "machine-exit-codes-ignored",
        "the exit codes with which a program blames its machine mean nothing",
        replaced(verdicts, "classify_stop", _without_exit_codes),
        "a stop's reason is its cause",
        60,
    ),
    PlantedBug(
        "early-failures-not-limited",
        "a program that fails at once is started again as often as any other",
        changed(restart_policy, is_early_failure=lambda _attempt, _stop: False),
        "a program that fails at once is started twice at most",
        90,
    ),
    PlantedBug(
        "machine-of-an-early-failure-ended",
        "a program that fails at once is started again on another machine",
        changed(stopping, _kept_machine=lambda _job, _stop, _delay_seconds: ""),
        "a program that failed early is started on its machine again",
        60,
    ),
)
