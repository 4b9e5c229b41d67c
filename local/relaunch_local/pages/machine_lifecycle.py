"""Generates docs/machine-lifecycle.md from the transition table of machines.

Run `python -m relaunch_local.pages.machine_lifecycle docs/machine-lifecycle.md`.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from relaunch.core.machines.events import MachineEvent
from relaunch.core.machines.machine import (
    AdmitJobs,
    AskFleet,
    ChargeJobs,
    Consequence,
    DeregisterNode,
    ForgetUnready,
    MachineState,
    RememberFailures,
    RememberLaunch,
    TellJobs,
    TerminateInstance,
)
from relaunch.core.machines.table import COMPLETIONS, TABLE
from relaunch_local.pages.transitions import (
    completions_section,
    diagram,
    effects_list,
    events_section,
    section,
    transitions_section,
)

_STATES = {
    MachineState.REQUESTED: "it is saved; EC2 may or may not have been asked, and may or may not have launched it",
    MachineState.STARTING: "EC2 launched the instance; it has not registered with all its accelerators",
    MachineState.READY: "it is registered with all its accelerators: tasks can be placed on it",
    MachineState.ENDING: "its termination was requested, or EC2 ends it; it still counts against the limits",
    MachineState.GONE: "EC2 confirmed that there is no instance",
}

_CONSEQUENCES = {
    Consequence.NEXT: "it selects again at once: what was refused is avoided now",
    Consequence.AGAIN: "it selects again after some seconds: EC2 takes fewer requests per second",
    Consequence.PAUSE: "it selects again after 30 seconds to 15 minutes: every request would be refused",
}

_EFFECTS = {
    AskFleet: "CreateFleet or RunInstances, with an optional delay",
    TerminateInstance: "TerminateInstances for its instance",
    DeregisterNode: "DeregisterContainerInstance, for a registration that outlived its instance",
    TellJobs: "request the launch of the jobs that wait for it",
    AdmitJobs: "request the launch of the jobs that have waited longest for the limits on machines",
    RememberLaunch: "that EC2 had capacity in that spot pool is kept",
    ForgetUnready: "no job avoids its offering or image any more because other machines did not become ready",
    ChargeJobs: "each job that it was there for pays its part of what it cost",
    RememberFailures: "all jobs avoid the offerings that EC2 refused for some time",
}

_HEAD = """\
# The lifecycle of a machine

<!-- Written by `python -m relaunch_local.pages.machine_lifecycle docs/machine-lifecycle.md` from
relaunch.core.machines.table. -->

A machine of the stack's own is one request to EC2 Fleet and the instance that came of it. Every transition is a row of
one table, `relaunch.core.machines.table.TABLE`. The code runs the first row that matches state, event and guard; an
event without a row changes nothing and is logged. [lifecycle.md](lifecycle.md) has the table of jobs.
"""

_ALWAYS = """\
## Invariants

- A machine is saved before EC2 is asked for its instance, with the claim of the job that needs it: an instance without
  a machine is a leak, and is terminated.
- Its request and client token never change. A refused machine is GONE; the next request is another machine.
- A machine that is not GONE has a `wake_at`: if all events are lost, `reconcile` checks it at that time.
- It counts against the limits of the stack until it is GONE, and it is GONE only when EC2 says so.
- While a job claims it, Relaunch does not end it, unless it does not become ready in time, is to be interrupted
  before it has a task, does not confirm the stop of a task, and its other jobs had ten minutes to leave, or its agent
  stays away; without claims it ends, after the time for which the stack keeps it.
- The effects of a decision are saved with it, and each of them is idempotent. Those that call EC2 or deregister a node
  stay pending until `request_machine` has done them:
"""


def render_page() -> str:
    """Return the page in Markdown, with its diagram in Mermaid."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    yield from diagram(MachineState, TABLE, (f"{MachineState.REQUESTED}: claimed by a job",), (MachineState.GONE,))
    yield from section("States", ("state", "means"), _STATES.items())
    yield from section("What a refused job does", ("consequence", "means"), _CONSEQUENCES.items())
    yield from events_section(MachineEvent)
    yield from transitions_section(MachineState, TABLE)
    yield from completions_section(COMPLETIONS)
    yield _ALWAYS.rstrip("\n")
    yield from effects_list(_EFFECTS.items())


def main(arguments: Sequence[str]) -> None:
    """Write the page to the given file."""
    Path(arguments[0]).write_text(render_page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
