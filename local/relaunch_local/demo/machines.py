"""Shows the machines of a job: what EC2 is asked for, what it launches, and that nothing of it is left at the end."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from rich.text import Text

from relaunch.core.machines.machine import Machine, MachineState
from relaunch.core.machines.settings import JOB_TAG, MACHINE_TAG
from relaunch_local.demo import drawings
from relaunch_local.demo.schedule import running_schedule
from relaunch_local.demo.session import Session
from relaunch_local.ecs import Purchase, RecordedRequest

# The offering that EC2 has none of, although it is the cheapest.
SCARCE_TYPE = "g4dn.xlarge"
SCARCE_ZONE = "eu-central-1b"


def make_scarce(session: Session) -> None:
    """Let EC2 refuse every spot instance of the cheapest offering, as it does when others have taken them all."""
    simulator = session.local.simulator
    with simulator.clock.lock:
        refusals = simulator.fleets.pools.refusals
        refusals[SCARCE_TYPE, Purchase.SPOT, SCARCE_ZONE] = "InsufficientInstanceCapacity"
    session.recorder.record_action("scarce", instance_type=SCARCE_TYPE, zone=SCARCE_ZONE)


def wait_for_request(session: Session, job_id: str, number: int) -> RecordedRequest:
    """Wait for the CreateFleet request of a job's machine, counted from 1."""
    what = "EC2 is asked for a machine" if number == 1 else "EC2 is asked for the next machine"

    def poll() -> RecordedRequest | None:
        found = requests_of(session, job_id)
        return found[number - 1] if len(found) >= number else None

    return session.expect(what, poll)


def requests_of(session: Session, job_id: str) -> list[RecordedRequest]:
    """Return the CreateFleet requests of a job that EC2 has answered, each machine's first one, in order."""
    with session.local.simulator.clock.lock:
        made = [each for each in session.local.simulator.requests if each.action == "CreateFleet"]
    own = (each for each in made if each.outcome[0] == "ok" and tags_of(each.parameters)[JOB_TAG] == job_id)
    first: dict[str, RecordedRequest] = {}
    for each in own:
        first.setdefault(each.parameters["ClientToken"], each)
    return list(first.values())


def tags_of(request: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags that a CreateFleet request gives its instance."""
    specifications = request.get("TagSpecifications", ())
    tags = next((each["Tags"] for each in specifications if each["ResourceType"] == "instance"), ())
    return {tag["Key"]: tag["Value"] for tag in tags}


def show_request(session: Session, request: RecordedRequest) -> None:
    """Show a CreateFleet request as EC2 received it."""
    session.screen.show(drawings.draw_create_fleet(request.parameters, session.screen.table_width))
    session.screen.note("one of these; its tags find it again if the answer is lost")


def wait_for_machine(session: Session, request: RecordedRequest) -> Machine:
    """Wait until the instance of a request is launched and known; show it, and what was refused on the way."""
    machine_id = tags_of(request.parameters)[MACHINE_TAG]
    machine = session.expect("EC2 launches an instance", lambda: _launched(session, machine_id))
    remembered = session.deps.capacity.load_capacity_memory(session.deps.clock.now()).values()
    for failure in remembered:
        if machine.request.override_of(failure.offering) is not None:
            session.screen.line(
                Text(f"refused:    {failure.offering}", style="yellow").append(", which all jobs avoid now")
            )
            session.screen.note(failure.reason)
    launched = Text("launched:   ").append(str(machine.instance_id), style="bold")
    session.screen.line(launched.append(f", {machine.offering}"))
    return machine


def _launched(session: Session, machine_id: str) -> Machine | None:
    """Return the machine once it has an instance and what EC2 refused is remembered."""
    machine = session.deps.machines.load_machine(machine_id)
    is_known = machine is not None and machine.instance_id and not machine.pending
    return machine if is_known else None


def show_registration(session: Session, machine: Machine) -> None:
    """Wait until the machine has registered with the cluster."""

    def poll() -> Machine | None:
        found = session.deps.machines.load_machine(machine.machine_id)
        return found if found is not None and found.registered_at else None

    ready = session.expect("it boots, and its agent registers with the cluster", poll)
    session.screen.line(f"registered: {ready.instance_id} is in the cluster, with {ready.capacity.gpus:g} GPU")


def wait_for_end(session: Session, job_id: str) -> None:
    """Wait until EC2 has terminated every machine of a job, and show how long each was paid for.

    Nothing is left to be saved: the two minutes after a warning need not pass.
    """
    with session.local.simulator.clock.lock:
        session.local.simulator.finish_interruptions()
    for request in requests_of(session, job_id):
        with running_schedule(session.local):
            machine = session.expect("EC2 terminates the machine", partial(_gone, session, tags_of(request.parameters)))
        simulator = session.local.simulator
        with simulator.clock.lock:
            (line,) = (each for each in simulator.instances.bill if each.instance_id == machine.instance_id)
        session.screen.line(drawings.describe_end(line, simulator.clock.now()))


def _gone(session: Session, tags: Mapping[str, str]) -> Machine | None:
    machine = session.deps.machines.load_machine(tags[MACHINE_TAG])
    is_gone = machine is not None and machine.state is MachineState.GONE
    return machine if is_gone else None
