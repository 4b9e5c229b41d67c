"""Tasks that do not start, by each class of errors that the ECS agent has, and machines whose GPUs fail.

One of these faults is in every other seed, and draws from a stream of its own. Nobody mends a definition that starts
nowhere: it goes on failing after the other faults have stopped. A start that is refused is granted with the other
faults at the latest. The texts are those of the agent's source and of "Amazon ECS stopped tasks error messages"; that
the driver's Xid is in the reason of a container rests on no documentation.
"""

from relaunch_local.ecs.engine.model import Instance, Task
from relaunch_local.ecs.processes.port import ProcessSpec
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.aws.recipes import MACHINE_EXIT_CODE, MachineFault, source_family
from relaunch_local.simulation.checks.failed_tasks import Cause

# Every other seed has one, in this order: few jobs get as far as their second machine with unknown words. Starts are
# refused in seeds between those, whose number they leave as it was.
_EVERY = 2
_FIRST = 1
_EVERY_REFUSED = 16
_FIRST_REFUSED = 12
_IN_TURN = (
    Cause.EVERYWHERE,
    Cause.UNKNOWN,
    Cause.MACHINE,
    Cause.TRANSIENT,
    Cause.UNKNOWN,
    Cause.XID,
    Cause.MACHINE,
    Cause.UNKNOWN,
    Cause.EXIT_CODE,
)
_FAULTY_MACHINES = 2
_RUNC = "CannotStartContainerError: Error response from daemon: failed to create task for container: failed to create "
_RUNC += "shim task: OCI runtime create failed: runc create failed: "
TEXTS = {
    Cause.EVERYWHERE: (
        "ResourceInitializationError: unable to pull secrets or registry auth: execution resource retrieval failed: "
        "unable to retrieve secret from asm: service call has been retried 1 time(s): ResourceNotFoundException: "
        "Secrets Manager can't find the specified secret.",
        f'{_RUNC}unable to start container process: exec: "train": executable file not found in $PATH: unknown',
        'CannotCreateContainerError: Error response from daemon: invalid mount config for type "bind": bind source '
        "path does not exist: /data",
        "CannotStartContainerError: Error response from daemon: failed to initialize logging driver: failed to create "
        "Cloudwatch log stream: ResourceNotFoundException: The specified log group does not exist.",
    ),
    Cause.MACHINE: (
        f"{_RUNC}error running prestart hook #0: nvidia-container-cli: initialization error: nvml error: driver not "
        "loaded: unknown",
        "CannotPullContainerError: failed to register layer: write /usr/lib/libcudnn.so.9: no space left on device",
        "CannotCreateContainerError: Error response from daemon: mkdir /var/lib/docker/overlay2/1f: read-only file "
        "system",
    ),
    Cause.TRANSIENT: (
        "CannotPullContainerError: net/http: TLS handshake timeout",
        "CannotPullContainerError: received unexpected HTTP status: 503 Service Unavailable",
        "ResourceInitializationError: unable to pull secrets or registry auth: fetching secret data from AWS Secrets "
        "Manager in region us-east-1: ThrottlingException: Rate exceeded",
    ),
    Cause.REFUSED: (
        "ECS was unable to assume the role 'arn:aws:iam::111122223333:role/trainer' that was provided for this task.",
        "ResourceInitializationError: unable to pull secrets or registry auth: execution resource retrieval failed: "
        "unable to retrieve secret from asm: service call has been retried 1 time(s): AccessDeniedException: User: "
        "arn:aws:sts::111122223333:assumed-role/trainer/1 is not authorized to perform: secretsmanager:GetSecretValue",
        "CannotPullContainerError: Error response from daemon: Head https://registry.example/v2/train/manifests/1: "
        "no basic auth credentials",
        "CannotStartContainerError: Error response from daemon: failed to initialize logging driver: failed to create "
        "Cloudwatch log stream: AccessDeniedException: User: arn:aws:sts::111122223333:assumed-role/trainer/1 is not "
        "authorized to perform: logs:CreateLogStream",
    ),
    Cause.UNKNOWN: (
        "CannotStartContainerError: Error response from daemon: the flux capacitor is empty",
        "CannotPullContainerError: dial tcp: lookup registry.acme.example: no such host",
        "ResourceInitializationError: something new",
    ),
    Cause.XID: (
        "NVRM: Xid (PCI:0000:00:1e): 79, pid=1, name=train, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:00:1e): 48, pid=1, name=train, DBE (double bit error) ECC error",
        "NVRM: Xid (PCI:0000:00:1e): 94, pid=1, name=train, Contained ECC error",
    ),
    Cause.EXIT_CODE: ("",),
}
"""What ECS says, by the cause."""


class FailedTaskFaults:
    """Injects at most one such fault, in seeds whose jobs promise no deadline."""

    def __init__(self, account: SimulatedAccount) -> None:
        """Schedule the beginning of the fault of this seed, if it has one."""
        self._account = account
        self._dice = account.chance.stream("failed-tasks")
        self._cause: Cause | None = None
        self._text = self._family = ""
        self._faulty: set[str] = set()
        has_limits = any(each.estimated_duration is not None for each in account.scenario.definitions)
        if has_limits or _cause_of(account.chance.seed) is None:
            return
        account.clock.call_later(self._dice.uniform(0.0, 0.2) * account.scenario.chaos_seconds, self._begin)

    def _begin(self) -> None:
        cause = _cause_of(self._account.chance.seed)
        if cause is None or not self._account.chance.strikes(cause.value, 2.0):
            return
        self._cause = cause
        self._text = self._dice.choice(TEXTS[cause])
        self._family = self._dice.choice(self._account.scenario.definitions).task_definition
        self._account.simulator.lifecycle.start_error_of = self._start_error
        self._account.trainings.machine_fault_of = self._machine_fault
        if cause is Cause.TRANSIENT:
            self._account.clock.call_later(self._dice.uniform(60.0, 900.0), self._end)
        if cause is Cause.REFUSED:
            # Somebody grants it within the hour, or in the evening.
            longest_seconds = self._dice.choice((3_600.0, 20_000.0))
            self._account.clock.call_later(self._dice.uniform(60.0, longest_seconds), self.grant)
        self._account.trace.line(f"FAULT {cause}: {self._family}: {self._text}")

    def _end(self) -> None:
        self._cause = None

    def grant(self) -> None:
        """Grant what starts are refused for; what else fails goes on."""
        if self._cause is not Cause.REFUSED:
            return
        self._end()
        self._account.trace.line("GRANTED what starts were refused for")
        invariants = self._account.invariants
        failed = self._account.failed_tasks
        tasks = {job_id: invariants.tasks[job_id] for job_id, job in invariants.jobs.items() if not job.state.is_final}
        self._account.refusals.starts_granted(failed.refused_since(tasks, invariants.recorded_at))

    def _start_error(self, task: Task) -> str:
        host = task.instance
        cause = self._cause
        family = source_family(str(task.definition["family"]))
        if cause is None or host is None or not self._is_about_start(cause, family, host):
            return ""
        self._account.failed_tasks.meets(task.arn, cause, self._text, host)
        return self._text

    def _is_about_start(self, cause: Cause, family: str, host: Instance) -> bool:
        if cause in (Cause.EVERYWHERE, Cause.UNKNOWN, Cause.REFUSED):
            return family == self._family
        return cause is Cause.TRANSIENT or (cause is Cause.MACHINE and self._is_faulty(host))

    def _machine_fault(self, spec: ProcessSpec) -> MachineFault | None:
        host = self._account.simulator.instances.by_id.get(spec.instance_id)
        if self._cause not in (Cause.XID, Cause.EXIT_CODE) or host is None or not self._is_faulty(host):
            return None
        cause = self._cause
        is_xid = self._cause is Cause.XID
        return MachineFault(
            self._dice.uniform(1.0, 300.0),
            self._dice.choice((1, 134)) if is_xid else MACHINE_EXIT_CODE,
            self._text or None,
            lambda: self._account.failed_tasks.meets(spec.task_arn, cause, self._text, host),
        )

    def _is_faulty(self, host: Instance) -> bool:
        """Return whether a machine is at fault, for good: the first ones that take a task are."""
        if len(self._faulty) < _FAULTY_MACHINES:
            self._faulty.add(host.instance_id)
        return host.instance_id in self._faulty


def _cause_of(seed: int) -> Cause | None:
    if seed % _EVERY == _FIRST:
        return _IN_TURN[seed // _EVERY % len(_IN_TURN)]
    return Cause.REFUSED if seed % _EVERY_REFUSED == _FIRST_REFUSED else None
