"""Bugs in how a job is launched: where, with what answer of ECS, and until when."""

import re
from dataclasses import replace
from datetime import timedelta

from relaunch.adapters.aws import errors
from relaunch.adapters.aws.ecs import run_task as ecs_run_task
from relaunch.core.jobs.effects import CountRun, RememberCapacity
from relaunch.core.launches.launch import LaunchRefused, PlacementFailed
from relaunch.core.lifecycle import launching, machine_waits, running, stopping, waiting, withdrawals
from relaunch.core.selection import selection
from relaunch.entrypoints import task_changes
from relaunch.usecases import send_placement as sending
from relaunch.usecases import sweep_cluster as sweeping
from simulation import broken_parts as broken
from simulation.broken_parts import action, changed, replaced, without_effect
from simulation.planted_bugs import PlantedBug
from simulation.planting import action_changed, patched_in, rows_dropped

_DAY, _MONTH, _NOTHING = timedelta(days=1), timedelta(days=30), timedelta(0)


LAUNCH_BUGS = (
    PlantedBug(
        "token-of-each-send",
        "RunTask gets another client token each time the same placement try is sent",
        broken.token_of_each_send,
        "never two live tasks of one job",
        30,
    ),
    PlantedBug(
        "no-answer-is-no-task",
        "a RunTask that went unanswered counts as placed nowhere, and the next offering is tried",
        changed(ecs_run_task, LaunchUncertain=lambda reason: PlacementFailed((reason,))),
        "nothing is launched beside a live task",
        30,
    ),
    PlantedBug(
        "throttling-is-refusal",
        "a launch that ECS defers counts as refused for good",
        changed(ecs_run_task, LaunchDeferred=LaunchRefused),
        "every end is deserved",
        30,
    ),
    PlantedBug(
        "overlapping-registration-is-final",
        "a registration that ECS refuses for another one of its family counts as refused for good",
        changed(errors, _CONCURRENT_REGISTRATION="no such message"),
        "every end is deserved",
        30,
    ),
    PlantedBug(
        "refusal-is-the-end",
        "a job whose launch is refused because a permission is missing fails",
        changed(ecs_run_task, is_not_granted=lambda _error: False),
        "every end is deserved",
        60,
    ),
    PlantedBug(
        "refused-and-bought-again",
        "a refused job gives its machine up at once and asks for the next one",
        lambda: patched_in((launching, machine_waits, stopping, waiting), wait_until_granted=broken.bought_again(None)),
        "no more machines than probes are bought for a refusal",
        200,
    ),
    PlantedBug(
        "placement-expires-at-once",
        "a pending placement is closed as soon as it was not sent at once",
        changed(sending, OLDEST_PLACEMENT=timedelta(seconds=1), _SENDING_GRACE=_NOTHING),
        "nothing is launched beside a live task",
        30,
    ),
    PlantedBug(
        "no-listing-grace",
        "a pending placement is closed as soon as ECS does not list its task",
        changed(sending, _SENDING_GRACE=_NOTHING),
        "no job ends before its task",
        105,
    ),
    PlantedBug(
        "placement-never-too-old",
        "RunTask is sent again however old its client token is",
        changed(sending, OLDEST_PLACEMENT=_DAY),
        "one placement try makes one task",
        60,
    ),
    PlantedBug(
        "refusal-is-final",
        "a launch that ECS refuses is taken to have no task, though it may have one from before",
        replaced(sending, "_answer", broken.as_if_sent_for_the_first_time),
        "nothing is launched beside a live task",
        30,
        first=80,
    ),
    PlantedBug(
        "refused-provider-ends-the-job",
        "a capacity provider that is being replaced ends the job",
        changed(ecs_run_task, _NO_CAPACITY=re.compile(r"(?!)"), _ABOUT_PROVIDER=re.compile(r"(?!)")),
        "every end is deserved",
        33,
        first=5,
    ),
    PlantedBug(
        "price-cap-ignored",
        "max_price_usd_per_hour rejects no offering",
        replaced(
            selection,
            "derive_criteria",
            lambda original: lambda *parts, **named: replace(original(*parts, **named), price_caps=()),
        ),
        "price caps are kept",
        60,
        first=10,
    ),
    PlantedBug(
        "start-not-awaited",
        "a task that does not start is waited for as long as ECS waits",
        action("wake_placed", broken.go_on_waiting),
        "a task without a machine is withdrawn in time",
        90,
    ),
    PlantedBug(
        "hanging-pull-awaited",
        "a task that has a machine is waited for, whether it starts or not",
        lambda: action_changed("wake_placed", broken.wait_for_pull_for_ever(withdrawals.wake_placed)),
        "a task that does not start is withdrawn in time",
        60,
    ),
    PlantedBug(
        "start-limits-mixed-up",
        "a task without a machine has as long to start as one that pulls its image",
        lambda: patched_in((launching, running, withdrawals), start_deadline=broken.half_an_hour_for_all),
        "a task without a machine is withdrawn in time",
        60,
    ),
    PlantedBug(
        "image-wait-for-ever",
        "a job waits for its image for ever",
        lambda: action_changed("wake_waiting", broken.wait_for_image_for_ever(waiting.wake_waiting)),
        "a job that can finish does finish",
    ),
    PlantedBug(
        "image-not-noticed",
        "the image a job waits for arrives unnoticed",
        lambda: rows_dropped("image_arrived"),
        "every end is deserved",
    ),
    PlantedBug(
        "capacity-forgotten",
        "an offering that failed is not remembered",
        without_effect(RememberCapacity),
        "an effect is done before it is forgotten",
    ),
    PlantedBug(
        "capacity-never-expires",
        "an offering that failed is avoided for a month",
        changed(stopping, AVOID_AFTER_NO_CAPACITY=_MONTH),
        "no offering is avoided for longer than four hours",
        30,
    ),
    PlantedBug(
        "interruption-shuts-offering",
        "an interruption lets all jobs avoid its offering",
        changed(stopping, _count_run=broken.avoid_when_interrupted),
        "an interruption shuts no offering for others",
    ),
    PlantedBug(
        "kept-off-one-machine-shuts-offering",
        "a launch that is kept from a machine and finds no other lets all jobs avoid the offering",
        lambda: patched_in((launching, stopping), avoid=broken.avoid_for_all(stopping.avoid)),
        "a job kept from machines shuts no offering for others",
        90,
    ),
    PlantedBug(
        "runs-not-counted",
        "runs on spot are not counted",
        without_effect(CountRun),
        "an effect is done before it is forgotten",
    ),
    PlantedBug(
        "late-machine-ignored",
        "the event of a machine that arrived late changes nothing",
        changed(task_changes, observe_machine=lambda _seen, _deps: None),
        "a machine that arrived late is used, not avoided",
        30,
    ),
    PlantedBug(
        "late-machine-unswept",
        "a sweep opens no offering again, and the event of a late machine may be lost",
        changed(sweeping, reopen_offerings=lambda _failures, _machines, _deps: None),
        "a machine that arrived late is used, not avoided",
        90,
    ),
)
