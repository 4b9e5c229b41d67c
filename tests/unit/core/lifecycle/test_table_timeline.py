"""What the owner of a job reads in its timeline, and when the job is looked at next, cell by cell of the matrix."""

from datetime import timedelta

import pytest

from fakes.builders import INSTANCE_ID, task_id
from unit.core.lifecycle.table_matrix import ANOTHER_MACHINE, ORPHANED, by_event, read_cells

CELLS = [cell for cell in read_cells() if cell.expected is not None]
NAMES = {"TASK": task_id(), "ORPHAN": ORPHANED, "MACHINE": INSTANCE_ID, "OTHER": ANOTHER_MACHINE}

# Event | situations | seconds until the next look (-: the job is over for good) | what is said, nothing in silence.
TOLD = """
image-arrived   | wi                | 300  | image arrived: image trainer:5e07 is there; …
chosen          | w0 wr ws wc wb wk wm wl | 300  | launching: g5.xlarge spot by g5-xlarge-spot at $0.4000/h
nothing-for-now | w0 wr ws wb wk wm wl | 300  | waiting for capacity: nothing
nothing-for-now | wc                | 300  |
nothing-ever    | w0 wc wb wk wl    | -    | nothing satisfies it: nothing
nothing-ever    | wr ws wm          | 300  | nothing satisfies it: nothing
impossible      | w0 wc wb wk wl    | -    | launch impossible: ECS refuses the derived revision
impossible      | wr ws wm          | 300  | launch impossible: ECS refuses the derived revision
read            | wr                | 300  | no progress: attempt 1 ran for 1h, longer than the 30m …
unreadable      | w0 wr ws wc wb wl | 300  | waiting for checkpoint: AccessDenied
unreadable      | wm                | 60   | waiting for checkpoint: AccessDenied
unreadable      | wk                | 300  |
not-granted     | w0 wr ws wc wb wk wl | 300  | waiting for refused: iam:PassRole
not-granted     | wm                | 60   | waiting for refused: iam:PassRole
slot-denied|w0 wr wc wb wk wm wl|900|waiting for slot: definition resnet has no free slot of its 5 (max_running_jobs)
slot-denied     | ws                | 900  |
budget-denied   | w0 wr ws wc wb wk wl | 600  | waiting for budget: the budget of stack has no room
budget-there    | wm pl ru ro rh rn rd rm si sn so sp | 0 |
budget-used-up  | wm si sn so sp    | 0    |
budget-used-up  | pl ru ro rh rn rd rm | 180  | budget used up: the budget of stack for 2026-03 is $0.00, …
repeated        | fz fx             | 300  |
placed          | w0 wi ws wc wb wk wm wl | 0    | orphaned task: TASK
placed          | fz                | 900  | task placed: TASK
placed          | fx                | 180  | cancelling: cancel
placed-another  | w0 wr wi ws wc wb wk pl ru si sn sc wm wl ro rh rn so sp rd rm | 0    | orphaned task: ORPHAN
placed-another  | fz                | 900  | task placed: ORPHAN
placed-another  | fx                | 180  | cancelling: cancel
placed-another  | ok ng ca to       | 300  | orphaned task: ORPHAN
placed-late     | w0 wr wi ws wc wb wk fz fx pl ru si sn sc wm wl ro rh rn so sp rd rm | 0    | orphaned task: ORPHAN
placed-late     | ok ng ca to       | 300  | orphaned task: ORPHAN
placed-before   | w0 wr wi ws wc wb wk fz fx pl ru si sn sc wm wl ro rh rn so sp rd rm | 0    | orphaned task: ORPHAN
placed-before   | ok ng ca to       | 300  | orphaned task: ORPHAN
place-failed    | fz                | 300  | placement failed: the cluster placed nothing: RESOURCE:GPU
place-failed    | fx                | 300  | cancelled: enough
deferred        | fz fx             | 330  | launch to be repeated: ThrottlingException
refused         | fz                | 300  | launch refused: the cluster refuses the launch: ClientException
refused         | fx                | 300  | cancelled: enough
conflict        | w0 wi ws wc wb wk wm wl | 0    | orphaned task: TASK
conflict        | fz                | 900  | task placed: TASK
conflict        | fx                | 180  | cancelling: cancel
denied          | fz                | 300  | waiting for refused: the cluster refuses the launch: AccessDeniedException
denied          | fx                | 300  | cancelled: enough
conflict-empty | fz | 300 | launch refused: the cluster refuses the launch: ConflictException, and it names no task
conflict-empty  | fx                | 300  | cancelled: enough
uncertain       | fz fx             | 330  | launch to be repeated: no answer
expired         | fz                | 300  | try closed: never sent
expired         | fx                | 300  | cancelled: enough
seen-pending    | wr                | 0    | orphaned task: TASK
seen-pending    | fz                | 900  | task PENDING:
seen-pending    | fx                | 180  | cancelling: cancel
seen-pending    | pl                | 1740 | task PENDING: MACHINE
seen-pending    | ru ro rh rd rm | 600  | still running: MACHINE us-east-1a
seen-pending    | rn                | 540  | still running: MACHINE us-east-1a
seen-pending    | si sn sc so sp    | 180  | task stopping: PENDING
seen-pending    | ok ng ca to       | 300  | orphaned task: TASK
seen-running    | wr                | 0    | orphaned task: TASK
seen-running    | fz                | 600  | running:
seen-running    | fx                | 180  | cancelling: cancel
seen-running    | pl                | 600  | running: MACHINE
seen-running    | ru ro rh rd rm | 600  | still running: MACHINE us-east-1a
seen-running    | rn                | 540  | still running: MACHINE us-east-1a
seen-running    | si sn sc so sp    | 180  | task stopping: RUNNING
seen-running    | ok ng ca to       | 300  | orphaned task: TASK
seen-old        | fz                | 600  | running:
seen-old        | fx                | 180  | cancelling: cancel
seen-ending     | fz pl ru si sn sc ro rh rn so sp rd rm | 180  | task stopping: DEACTIVATING
seen-ending     | fx                | 180  | cancelling: cancel
seen-stopping   | fz pl ru si sn sc ro rh rn so sp rd rm | 180  | task stopping: RUNNING
seen-stopping   | fx                | 180  | cancelling: cancel
seen-order-old  | fz                | 180  | task stopping: Essential container in task exited
seen-order-old  | fx                | 180  | cancelling: cancel
seen-order-old  | si sn sc so sp    | 0    |
seen-exit-0     | fz pl ru sn ro rh rd rm | 300  | succeeded: the program finished (exit code 0; …
seen-exit-0     | fx sc             | 300  | cancelled: cancelled (exit code 0; …
seen-exit-0     | si so sp rn       | 300  | stopped: interruption: the machine was taken away (exit code 0; …
seen-exit-1     | fz pl ru sn ro rh rn rd rm | 330  | stopped: user-error: the program failed (exit code 1; …
seen-exit-1     | fx sc             | 300  | cancelled: cancelled (exit code 1; …
seen-exit-1     | si so sp          | 300  | stopped: interruption: the machine was taken away (exit code 1; …
seen-deleted    | fz pl ru sn ro rh rd rm | 300  | succeeded: the program finished (exit code 0; …
seen-deleted    | fx sc             | 300  | cancelled: cancelled (exit code 0; …
seen-deleted    | si so sp rn       | 300  | stopped: interruption: the machine was taken away (exit code 0; …
orphan          | w0 wr wi ws wc wb wk fz fx pl ru si sn sc wm wl ro rh rn so sp rd rm | 0    | orphaned task: ORPHAN
orphan          | ok ng ca to       | 300  | orphaned task: ORPHAN
orphan-sibling  | wr pl ru si sn sc ro rh rn so sp rd rm | 0    | orphaned task: ORPHAN
orphan-sibling  | fz                | 600  | running:
orphan-sibling  | fx                | 180  | cancelling: cancel
orphan-sibling  | ok ng ca to       | 300  | orphaned task: ORPHAN
missing         | pl ru si sn sc ro rh rn so sp rd rm | 60   | task missing: TASK
warned          | pl ru sn sc       | 180  | interruption warning: spot interruption warning for MACHINE
warned | ro rh rn rd rm | 20 | interruption warning: spot interruption warning for MACHINE; it trains on until…
warned-by-task  | pl ru sn sc       | 180  | interruption warning: spot interruption warning for OTHER
warned-by-task | ro rh rn rd rm | 20 | interruption warning: spot interruption warning for OTHER; it trains on until…
host-ended      | pl ru si sn sc ro rh rn so sp rd rm | 60   | machine ended: MACHINE is shutting-down
cancel          | w0 wi wc wb wk wl | -    | cancelled: enough
cancel          | wr ws wm          | 300  | cancelled: enough
cancel          | fz                | 300  | cancel asked: enough
cancel          | pl ru ro rh rn rd rm | 180  | cancelling: enough
cancel          | si sn so sp       | 180  | cancel asked: enough
time            | w0 wr wc wb wk wm wl | 300  |
time            | wi                | 120  |
time            | ws                | 900  |
time            | fz fx             | 300  | launch requested: the placement try has no task yet
time            | pl                | 1740 |
time            | ru ro rh rd rm | 600  |
time            | rn                | 540  |
time            | si so sp          | 180  | stop repeated: interruption
time            | sn                | 180  |
time            | sc                | 180  | stop repeated: cancel
time-too-late   | w0 wi wc wb wk wl | -    | out of time: the deadline of 36h after acceptance has passed
time-too-late   | wr ws wm          | 300  | out of time: the deadline of 36h after acceptance has passed
time-too-late   | fz fx             | 300  | launch requested: the placement try has no task yet
time-too-late   | pl ru ro rh rn rd rm | 180  | out of time: the deadline of 36h after acceptance has passed
time-too-late   | si so sp          | 300  | stop not confirmed: interruption; its stop was not confirmed …
time-too-late   | sn                | 300  | stop not confirmed: the task was stopping; its stop was not confirmed …
time-too-late   | sc                | 300  | stop not confirmed: enough; its stop was not confirmed …
chosen-too-late | w0 wc wb wk wl    | -    | out of time: the deadline of 36h after acceptance has passed
chosen-too-late | wr ws wm          | 300  | out of time: the deadline of 36h after acceptance has passed
machine-claimed | w0 wr ws wc wb wk wl | 120  | machine claimed: EC2 is asked for g5.xlarge
machine-claimed | so rh rd | 0    | next machine claimed: EC2 is asked for g5.xlarge
machine-awaited | wm                | 120  |
machine-lost    | wm                | 300  | machine lost: it never registered
machine-lost    | sp rn rm | 0    |
machine-refused | wm                | 300  | machine lost: EC2 has no capacity for it
machine-refused | sp rn rm | 0    |
machine-limit|w0 wr ws wc wb wk|300|waiting for machine limit: the stack has reached its limit of machines of its own
machine-limit   | wl                | 300  |
claimed-too-late | w0 wc wb wk wl    | -    | out of time: the deadline of 36h after acceptance has passed
claimed-too-late | wr ws             | 300  | out of time: the deadline of 36h after acceptance has passed
claimed-too-late | so rh rd | -133140 | next machine claimed: EC2 is asked for g5.xlarge
machine-paid    | w0 wr wi ws wc wb wk wm wl fz fx pl ru ro rh rn rd rm si sn sc so sp | 0 |
machine-paid    | ok ng ca to       | -    |
machine-left    | w0 wr wi ws wc wb wk wm wl fz fx pl ru ro rh rn rd rm si sn sc so sp | 0 |
machine-left    | ok ng ca to       | -    |
next-ready      | rn                | 180  | next machine ready: end of the Capacity Block
next-ready      | rm                | 180  | next machine ready: leaving on-demand for spot pays
noted           | ru ro rh rn rd rm | 0    |
move-declined   | rd                | 600  |
"""


def read_told() -> dict[tuple[str, str], tuple[str, str]]:
    """Return (seconds, words) by (event, situation)."""
    told = {}
    for line in TOLD.strip().splitlines():
        event_name, situations, seconds, words = (part.strip() for part in line.split("|"))
        for name, meant in NAMES.items():
            words = words.replace(name, meant)
        told |= {(event_name, situation): (seconds, words) for situation in situations.split()}
    return told


EXPECTED = read_told()


def test_every_cell_in_which_something_happens_is_told_of() -> None:
    assert set(EXPECTED) == {(cell.event_name, cell.situation) for cell in CELLS}


@pytest.mark.parametrize("event_name", by_event(CELLS))
def test_the_timeline_says_what_happened_when_and_to_which_attempt(event_name: str) -> None:
    for cell in by_event(CELLS)[event_name]:
        decision = cell.decision
        job = decision.job

        seconds, words = EXPECTED[event_name, cell.situation]
        said = "".join(f"{entry.event}: {entry.detail}".strip() for entry in decision.timeline)
        assert said.startswith(words[:-1]) if words.endswith("…") else said == words, cell
        assert job.wake_at == (None if seconds == "-" else cell.now + timedelta(seconds=int(seconds))), cell
        for entry in decision.timeline:
            assert (entry.at, entry.state) == (cell.now, job.state), cell
            assert entry.attempt_number == (job.attempt.number if job.attempt else None), cell
