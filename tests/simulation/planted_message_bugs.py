"""Bugs in how an event becomes one job, and in what becomes of messages."""

from datetime import timedelta

from relaunch.adapters.aws import errors
from relaunch.adapters.aws.sqs import batch as sqs_batch
from relaunch.adapters.aws.sqs.source_queue import SourceQueue
from relaunch.core.triggers import upload_rules
from simulation import broken_parts as broken
from simulation.broken_parts import changed
from simulation.planted_bugs import PlantedBug

MESSAGE_BUGS = (
    PlantedBug(
        "create-unconditional",
        "a job that is there already is created again",
        broken.unconditional_create,
        "every write is the next version",
    ),
    PlantedBug(
        "id-of-each-delivery",
        "a job's id comes from the delivery, not from what was delivered",
        broken.id_of_each_delivery,
        "an accepted event becomes exactly one job",
    ),
    PlantedBug(
        "push-without-its-time",
        "the identity of a push is what it changed, so a push that is made again after a revert starts nothing",
        broken.identity_without(r"(?<=[0-9a-f]{40}):\d+$"),
        "an accepted event becomes exactly one job",
    ),
    PlantedBug(
        "upload-without-its-write",
        "the identity of an upload is its key, so an object that is overwritten starts nothing",
        broken.identity_without(r"sequencer=\w+"),
        "an accepted event becomes exactly one job",
    ),
    PlantedBug(
        "unreadable-message-kept",
        "a message that fails permanently stays in its queue",
        changed(sqs_batch, PermanentError=type("NoSuchError", (Exception,), {})),
        "every unreadable message is dead-lettered",
        30,
    ),
    PlantedBug(
        "failed-message-deleted",
        "a message that fails for a temporary reason is deleted and not sent again",
        changed(SourceQueue, send_again=lambda queue, record, _seconds, _since=None: queue.delete(record)),
        "an accepted event becomes exactly one job",
    ),
    PlantedBug(
        "outage-given-up",
        "a message that fails for a temporary reason is given up after a quarter of an hour",
        changed(sqs_batch, LONGEST_RETRY=timedelta(minutes=15)),
        "only unreadable messages are dead-lettered",
        60,
    ),
    PlantedBug(
        "nothing-is-transient",
        "every error of AWS is treated as permanent",
        changed(errors, is_transient=lambda _error: False),
        "only unreadable messages are dead-lettered",
    ),
    PlantedBug(
        "rules-without-suffix",
        "the rules of triggers select every key with the prefix of a trigger",
        changed(upload_rules, _matchers=lambda trigger: [{"prefix": trigger.prefix}]),
        "only watched uploads become messages",
    ),
    PlantedBug(
        "rule-of-first-trigger",
        "the rule for a bucket selects the keys of one trigger only",
        changed(upload_rules, _covers=lambda wide, narrow: wide.prefix < narrow.prefix),
        "an accepted event becomes exactly one job",
        30,
    ),
)
