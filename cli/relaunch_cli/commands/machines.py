"""`relaunch machines`."""

from typing import TYPE_CHECKING, Annotated

import typer

from relaunch.core.machines.machine import MachineState
from relaunch_cli.lookup import connect
from relaunch_cli.options import DEFAULT_STACK, Json, Stack
from relaunch_cli.views.json_output.machines import machines_json
from relaunch_cli.views.machines import describe_left, describe_warm, render_machines, render_totals
from relaunch_cli.views.screen import print_json, print_note, print_result, progress

if TYPE_CHECKING:
    from relaunch.core.machines.machine import Machine
    from relaunch.ports import MachineStore


def machines(
    context: typer.Context,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of machines to read.")] = 200,
    *,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """List the machines that Relaunch requested from EC2 and that are not gone, newest first.

    A machine without an instance is still requested; its price is an upper limit. Beside the table: what all of them
    cost, the limits of the stack, and what is kept without a job.
    """
    deps = connect(context, stack).deps
    limits = deps.limits.machines
    is_on = deps.machine_settings.is_on
    with progress("reading machines"):
        found, is_cut = _load_machines(deps.machines, limit)
        totals = deps.machines.load_totals()
    if as_json:
        print_json(machines_json(found, totals, limits, deps.clock.now(), is_on=is_on, is_cut=is_cut))
        return
    if found:
        print_result(render_machines(found, deps.clock.now()))
        print_note(render_totals(totals, limits))
        for note in filter(None, (describe_warm(found, limits.warm_time), describe_left(found, deps.clock.now()))):
            print_note(note)
    elif is_on:
        print_note("no machines: no job runs on one, or waits for one")
    if not is_on:
        print_note("the stack requests no machines of its own: the parameter MachineSubnets turns that on")
    if is_cut:
        print_note(f"only {limit} machines were read: see --limit")


def _load_machines(store: "MachineStore", limit: int) -> "tuple[list[Machine], bool]":
    """Return machines that are not gone, newest first, and whether others were left unread."""
    machine_ids = store.load_living(limit + 1)
    loaded = [store.load_machine(machine_id) for machine_id in machine_ids[:limit]]
    # The index has machines that are gone too, while effects are pending and until it has caught up.
    living = [machine for machine in loaded if machine is not None and machine.state is not MachineState.GONE]
    living.sort(key=lambda machine: (machine.created_at, machine.machine_id), reverse=True)
    return living, len(machine_ids) > limit
