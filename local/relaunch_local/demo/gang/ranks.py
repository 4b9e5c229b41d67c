"""The steps of a job over several machines: each waits for something of all ranks, and shows it."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from rich.text import Text

from relaunch.core.machines.machine import Machine, MachineState
from relaunch.ports import JobHistory
from relaunch_local.demo import drawings, machines
from relaunch_local.demo.gang import drawings as gang_drawings
from relaunch_local.demo.gang.logs import RankLogs
from relaunch_local.demo.gang.training import listening
from relaunch_local.demo.schedule import running_schedule
from relaunch_local.demo.session import Session
from relaunch_local.demo.steps import attempt_of
from relaunch_local.ecs import RecordedRequest

Instances = Sequence[Mapping[str, Any]]


def wait_for_machines(session: Session, job_id: str, number: int, nodes: int, lost: Collection[str] = ()) -> Instances:
    """Wait until the machines of an attempt are requested, launched and registered; show them; return its instances.

    After the first attempt as many are requested as were `lost`, by their instances: those that live are kept.
    """
    request = machines.wait_for_request(session, job_id, number)
    session.screen.show(drawings.draw_create_fleet(request.parameters, session.screen.table_width))
    asked = request.parameters["TargetCapacitySpecification"]["TotalTargetCapacity"]
    options = request.parameters.get("SpotOptions") or request.parameters["OnDemandOptions"]
    least = options.get("MinTargetCapacity", 1)
    wanted = len(lost) or nodes
    session.require(asked == least == wanted, f"EC2 is asked for {wanted} or none, not for {least} to {asked}")
    found = session.expect_job(job_id, "EC2 launches all of them", partial(_launched, session, nodes, lost))
    instances = describe(session, [str(each.instance_id) for each in found])
    session.screen.line(Text("launched, beside those that are kept:" if lost else "launched, at once:", style="bold"))
    session.screen.show(gang_drawings.draw_machines(instances))
    ids = [each.machine_id for each in found]
    session.expect("they boot, and their agents register with the cluster", partial(_registered, session, ids))
    session.screen.line(f"all {nodes} are in the cluster: no task is placed before that")
    return instances


def describe(session: Session, instance_ids: Sequence[str]) -> Instances:
    """Return instances as EC2 describes them, in this order."""
    answer = session.local.client("ec2").describe_instances(InstanceIds=list(instance_ids))
    found = {each["InstanceId"]: each for part in answer["Reservations"] for each in part["Instances"]}
    return [found[each] for each in instance_ids]


def _launched(session: Session, nodes: int, lost: Collection[str], history: JobHistory) -> Sequence[Machine] | None:
    # It claims them until its tasks are placed, which may have happened meanwhile.
    attempt = history.job.attempt
    placed = [each.machine_id for each in attempt.placement.ranks] if attempt and attempt.stop is None else []
    found = [session.deps.machines.load_machine(each) for each in history.job.next_machines or placed]
    launched = [each for each in found if each and each.instance_id and each.instance_id not in lost]
    return launched if len(launched) == nodes else None


def _registered(session: Session, machine_ids: Sequence[str]) -> bool | None:
    found = (session.deps.machines.load_machine(each) for each in machine_ids)
    return all(each is not None and each.registered_at for each in found) or None


def wait_for_tasks(session: Session, job_id: str, number: int, nodes: int) -> Sequence[RecordedRequest]:
    """Wait until a task is placed for each rank; return the requests in the order of the ranks."""
    started_by = f"{job_id}/{number}"

    def poll() -> Sequence[RecordedRequest] | None:
        with session.local.simulator.clock.lock:
            made = [each for each in session.local.simulator.requests if each.action == "RunTask"]
        own = (each for each in made if each.outcome[0] == "ok" and each.parameters.get("startedBy") == started_by)
        # A request that is repeated has the same token.
        by_rank = {drawings.read_environment(each.parameters)["PET_NODE_RANK"]: each for each in own}
        return [by_rank[str(rank)] for rank in range(nodes)] if len(by_rank) == nodes else None

    return session.expect(f"RunTask for each rank of attempt {number}", poll)


def show_tasks(session: Session, requests: Sequence[RecordedRequest]) -> None:
    """Show the request of rank 0, and what the others have otherwise."""
    first, *others = requests
    shown = gang_drawings.SHOWN_ENVIRONMENT
    session.screen.show(drawings.draw_run_task(first.parameters, session.screen.table_width, shown))
    for each in others:
        rank = drawings.read_environment(each.parameters)["PET_NODE_RANK"]
        (constraint,) = each.parameters["placementConstraints"]
        machine = constraint["expression"].partition(" and ")[0]
        session.screen.note(f"the same with PET_NODE_RANK={rank}, {machine}")


def wait_for_running(session: Session, job_id: str, number: int, instances: Instances) -> None:
    """Wait until all tasks of an attempt are RUNNING, which must be one on each of these instances."""
    started_by = f"{job_id}/{number}"
    simulator = session.local.simulator

    def poll() -> set[str] | None:
        with simulator.clock.lock:
            details = [event["detail"] for event in session.recorder.events if event["source"] == "aws.ecs"]
            by_arn = {each.arn: each.instance_id for each in simulator.instances.by_id.values()}
        running = (each for each in details if each.get("lastStatus") == "RUNNING")
        arns = {each["containerInstanceArn"] for each in running if each.get("startedBy") == started_by}
        return {by_arn[arn] for arn in arns} if len(arns) == len(instances) else None

    places = session.expect(f"all ranks of attempt {number} run: the images are pulled, the containers start", poll)
    session.require(places == {each["InstanceId"] for each in instances}, "each rank runs on its machine")
    session.screen.line(f"attempt {number} is RUNNING: a task on each of the {len(instances)} machines")


def show_meeting(session: Session, requests: Sequence[RecordedRequest], instances: Instances, log: RankLogs) -> None:
    """Show where the ranks have met, once the first step is taken, and that each listens at its machine's address."""
    number = int(requests[0].parameters["startedBy"].rpartition("/")[2])
    log.wait_for(number, 0, "step", "torchrun starts a worker on each machine, they meet and take the first step")
    environment = drawings.read_environment(requests[0].parameters)
    addresses = [each["PrivateIpAddress"] for each in instances]
    session.require(environment["PET_MASTER_ADDR"] == addresses[0], "the ranks meet at the machine of rank 0")
    heard = listening(addresses)
    missing = [each for each in addresses if each not in heard]
    session.require(not missing, f"a rank listens at the address of each machine, but none at {', '.join(missing)}")
    session.screen.line(f"they meet at {addresses[0]}:{environment['PET_MASTER_PORT']}; gloo of each rank listens at")
    session.screen.note(", ".join(f"{each}:{heard[each]}" for each in addresses))


def find_exit_codes(session: Session, tasks: Sequence[str]) -> Sequence[int | None] | None:
    """Return the exit codes of these tasks once all are STOPPED."""
    with session.local.simulator.clock.lock:
        details = [event["detail"] for event in session.recorder.events if event["source"] == "aws.ecs"]
    stopped = {each["taskArn"]: each for each in details if each.get("lastStatus") == "STOPPED"}
    if not all(each in stopped for each in tasks):
        return None
    return [stopped[each]["containers"][0].get("exitCode") for each in tasks]


def wait_for_ends(session: Session, job_id: str) -> None:
    """Wait until EC2 has terminated every machine of a job, and show how long each was paid for."""
    with session.local.simulator.clock.lock:
        session.local.simulator.finish_interruptions()
    history = session.expect_job(job_id, "the job is in the table", lambda history: history)
    attempts = [attempt_of(history, number) for number in range(1, len(history.attempts) + 1)]
    # A machine that was kept is that of a rank of both attempts.
    instance_by_machine = {
        rank.machine_id: rank.instance_id for each in attempts if each for rank in each.placement.ranks
    }
    for machine_id, instance_id in instance_by_machine.items():
        with running_schedule(session.local):
            session.expect("EC2 terminates the machine", partial(_gone, session, machine_id))
        simulator = session.local.simulator
        with simulator.clock.lock:
            (line,) = (line for line in simulator.instances.bill if line.instance_id == instance_id)
        session.screen.line(drawings.describe_end(line, simulator.clock.now()))


def _gone(session: Session, machine_id: str) -> bool | None:
    machine = session.deps.machines.load_machine(machine_id)
    return (machine is not None and machine.state is MachineState.GONE) or None
