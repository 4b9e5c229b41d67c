"""Counts slots, groups and machines again after the table was restored from a backup (docs/deploy.md).

`python -m relaunch.adapters.aws.dynamodb.recount TABLE`, while no function of the stack runs: a restored table "might
contain some but not all changes made during a recent transaction" ("Amazon DynamoDB Transactions: How it works", Amazon
DynamoDB Developer Guide), so a counter may differ from what it counts.
"""

import sys
from collections import Counter
from collections.abc import Sequence

from relaunch.adapters.aws.dynamodb.groups import put_groups
from relaunch.adapters.aws.dynamodb.jobs import DynamoDbJobs
from relaunch.adapters.aws.dynamodb.machine_counters import put_totals
from relaunch.adapters.aws.dynamodb.machines import DynamoDbMachines
from relaunch.adapters.aws.dynamodb.slots import put_slots
from relaunch.adapters.aws.dynamodb.table import JobsTable
from relaunch.core.jobs.job import STACK_SLOT, Job
from relaunch.core.machines.decision import MachineTotals, micro_usd
from relaunch.core.machines.machine import MachineState
from relaunch.ports import PortError

# More than any stack has.
_ALL = 1_000_000


def recount(table: JobsTable) -> Sequence[str]:
    """Count slots, groups and the machines that are not gone; return which jobs cannot be read.

    The transaction that saved one of these was restored in part. They have no slot then, and hold no group.
    """
    jobs = DynamoDbJobs(table)
    machines = DynamoDbMachines(table)
    held: Counter[str] = Counter()
    unreadable: list[str] = []
    found: list[Job] = []
    for job_id in jobs.load_open(_ALL):
        try:
            job = jobs.load_job(job_id)
        except PortError as error:
            unreadable.append(f"{job_id}: {error}")
            continue
        if job is None:
            continue
        found.append(job)
        if job.has_slot:
            held.update((job.definition.name, STACK_SLOT))
    put_slots(table, held)
    put_groups(table, [each for each in found if not each.state.is_final])
    living = [machines.load_machine(each) for each in machines.load_living(_ALL)]
    counted = [each for each in living if each is not None and each.state is not MachineState.GONE]
    put_totals(table, MachineTotals(len(counted), sum(micro_usd(each.usd_per_hour) for each in counted)))
    return unreadable


def main() -> None:
    """Count in the table that the command line names."""
    import boto3  # noqa: PLC0415 - only who runs this needs a client of its own

    unreadable = recount(JobsTable(boto3.client("dynamodb"), sys.argv[1]))
    for each in unreadable:
        sys.stderr.write(f"{each}\n")
    if unreadable:
        sys.exit("These jobs were restored in part: restore the table of some seconds before, or look at them by hand.")


if __name__ == "__main__":
    main()
