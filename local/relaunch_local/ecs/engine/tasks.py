"""The lifecycle of tasks after placement: image pull, start, exit, stop, loss of the instance."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from relaunch_local.ecs.engine import placement
from relaunch_local.ecs.engine.containers import process_spec
from relaunch_local.ecs.engine.model import Container, Instance, LastStatus, StopCode, Task
from relaunch_local.ecs.engine.region import Region
from relaunch_local.ecs.engine.views import container_instance_event_detail, task_event_detail
from relaunch_local.ecs.processes.port import Processes, ProcessStartError, Script, ScriptedProcesses
from relaunch_local.ecs.rules.task_definition import restarts

_NEURON_DEVICE = re.compile(r"/dev/neuron(?P<number>[0-9]+)")
# torch-neuronx sets NEURON_RT_VISIBLE_CORES to LOCAL_RANK, and Neuron's runtime looks for core 0 on /dev/neuron0. On
# AWS the log has the text.
_WITHOUT_CORE_0 = Script(
    runtime_seconds=1.0,
    exit_code=1,
    reason="Specified core not accessible! is /dev/neuron0 visible to process?",
)
# The stopped reason of the task has these errors, the reason of a container all others.
_OF_THE_TASK = ("CannotPullContainerError", "ResourceInitializationError")


@dataclass(slots=True)
class TaskLifecycle:
    """Changes the state of tasks as the container agents report."""

    region: Region
    processes: Processes
    unpullable_images: set[str] = field(default_factory=set)
    on_stopped: list[Callable[[Task], None]] = field(default_factory=list)
    start_error_of: Callable[[Task], str] = lambda _task: ""
    """Returns the error with which a task fails to start; empty if it starts."""

    def publish(self, task: Task) -> None:
        """Increment the task's version and publish its state change."""
        task.version += 1
        task.listed_as = task.desired_status
        now = self.region.clock.now()
        self.region.events.publish("aws.ecs", "ECS Task State Change", task.arn, lambda: task_event_detail(task, now))

    def publish_container_instance(self, instance: Instance) -> None:
        """Increment the container instance's version and publish its state change."""
        instance.version += 1
        now = self.region.clock.now()
        self.region.events.publish(
            "aws.ecs",
            "ECS Container Instance State Change",
            instance.arn,
            lambda: container_instance_event_detail(instance, instance.cluster.arn, now),
        )

    def assign(self, task: Task, instance: Instance) -> None:
        """Assign the task to the instance; it is PENDING until its image is pulled."""
        placement.assign(instance, task)
        task.instance = instance
        task.last_status = LastStatus.PENDING
        task.connectivity_at = self.region.clock.now()
        self.publish(task)
        self._publish_resources(instance)
        self._later(task, self.region.timing.agent_reaction, lambda: self._pull(task))

    def _publish_resources(self, instance: Instance) -> None:
        if self.region.instance_resource_events:
            self.publish_container_instance(instance)

    def begin_stop(self, task: Task, code: StopCode, reason: str) -> None:
        """Begin to stop the task; the first stop code is kept."""
        if task.is_stopping:
            return
        task.desired_status = "STOPPED"
        task.stop_code = code
        task.stopped_reason = reason
        if task.last_status is LastStatus.PROVISIONING:
            self._stopped(task)
            return
        self.publish(task)
        was_running = task.last_status is LastStatus.RUNNING
        after = self._signal if was_running else self._finish
        self._later(task, self.region.timing.agent_reaction, lambda: after(task))

    def lose_instance(self, instance: Instance) -> None:
        """Stop the tasks of a terminated instance; the exit codes of their containers are unknown."""
        for task in list(instance.tasks.values()):
            if task.stop_code is None:
                task.stop_code = StopCode.TERMINATION_NOTICE
                task.stopped_reason = f"Host EC2 (instance {instance.instance_id}) terminated."
            task.desired_status = "STOPPED"
            task.stopping_at = task.stopping_at or self.region.clock.now()
            for container in task.containers:
                container.last_status = "STOPPED"
            self._stopped(task)

    def kill_processes(self, instance: Instance) -> None:
        """Kill the containers of an instance."""
        for task in instance.tasks.values():
            _cancel(task)
            for container in task.containers:
                if container.handle is not None and not container.is_over:
                    container.handle.kill()

    def reconnect(self, instance: Instance) -> None:
        """Process what the agent reports after it was disconnected."""
        backlog, instance.backlog = instance.backlog, []
        for report in backlog:
            report()

    def _later(self, task: Task, seconds: float, action: Callable[[], None]) -> None:
        if task.step_timer is not None:
            task.step_timer.cancel()
        task.step_timer = self.region.clock.call_later(seconds, lambda: self._by_agent(task, action))

    def _by_agent(self, task: Task, action: Callable[[], None]) -> None:
        instance = task.instance
        if task.is_stopped or instance is None or not instance.is_alive:
            return
        if instance.agent_connected:
            action()
        else:
            instance.backlog.append(lambda: self._by_agent(task, action))

    def _pull(self, task: Task) -> None:
        if task.is_stopping:
            return
        task.pull_started_at = self.region.clock.now()
        self._later(task, self._pull_seconds(task), lambda: self._start(task))

    def _pull_seconds(self, task: Task) -> float:
        """Return how long the pull takes: as long as that of the user data still does, if it is of the same image."""
        instance = task.instance
        images = {container.definition["image"] for container in task.containers}
        if instance is None or instance.pulled_at is None or images != {instance.pulled_image}:
            return self.region.timing.pull
        left = (instance.pulled_at - self.region.clock.now()).total_seconds()
        return max(left * self.region.clock.speed, 0.0)

    def _start(self, task: Task) -> None:
        if task.is_stopping:
            return
        now = self.region.clock.now()
        for container in task.containers:
            if container.definition["image"] in self.unpullable_images:
                image = container.definition["image"]
                self._fail_start(task, container, f"CannotPullContainerError: failed to resolve ref {image}: not found")
                return
        task.pull_stopped_at = now
        error = self.start_error_of(task) or (task.instance.start_error if task.instance is not None else "")
        if error:
            self._fail_start(task, task.containers[0], error)
            return
        for container in task.containers:
            if missing := _missing_device(task, container):
                self._fail_start(task, container, f"CannotStartContainerError: Error response from daemon: {missing}")
                return
            if not self._start_container(task, container):
                return
        task.started_at = now
        task.last_status = LastStatus.RUNNING
        self.publish(task)

    def _start_container(self, task: Task, container: Container) -> bool:
        container.runtime_id = self.region.ids.hexadecimal(64)

        def on_exit(code: int, reason: str | None) -> None:
            def ended() -> None:
                container.ended_at = self.region.clock.now()
                self._by_agent(task, lambda: self._exited(task, container, code, reason))

            # Called from any thread: the change is made on the clock's.
            self.region.clock.call_later(0.0, ended)

        processes = self.processes
        if _lacks_core_0(container):
            processes = ScriptedProcesses(self.region.clock, lambda _spec: _WITHOUT_CORE_0)
        try:
            container.handle = processes.start(process_spec(task, container, on_exit))
        except ProcessStartError as error:
            self._fail_start(task, container, f"CannotStartContainerError: Error response from daemon: {error}")
            return False
        container.last_status = "RUNNING"
        container.started_at = self.region.clock.now()
        container.ended_at = None
        return True

    def _fail_start(self, task: Task, container: Container, reason: str) -> None:
        container.reason = reason
        task.desired_status = "STOPPED"
        task.stop_code = StopCode.TASK_FAILED_TO_START
        task.stopped_reason = "Task failed to start"
        if reason.startswith(_OF_THE_TASK):
            task.stopped_reason = reason
        running = [each for each in task.containers if each.last_status == "RUNNING"]
        for each in task.containers:
            each.last_status = "RUNNING" if each in running else "STOPPED"
        for each in running:
            if each.handle is not None:
                each.handle.kill()
        if not running:
            self._finish(task)

    def _exited(self, task: Task, container: Container, code: int, reason: str | None) -> None:
        if container.is_over or (not task.is_stopping and self._restarted(task, container, code)):
            return
        container.last_status = "STOPPED"
        container.exit_code = code
        container.reason = reason
        if container.kill_timer is not None:
            container.kill_timer.cancel()
        if container.essential and not task.is_stopping:
            task.desired_status = "STOPPED"
            task.stop_code = StopCode.ESSENTIAL_CONTAINER_EXITED
            task.stopped_reason = "Essential container in task exited"
        if all(each.is_over for each in task.containers):
            self._finish(task)
        elif task.is_stopping and task.last_status is LastStatus.RUNNING:
            self._signal(task)
        else:
            self._report(task)

    def _restarted(self, task: Task, container: Container, code: int) -> bool:
        """Start a container again if its restart policy says so; the task goes on."""
        ran = self.region.clock.now() - (container.started_at or self.region.clock.now())
        return restarts(container.definition, code, ran.total_seconds()) and self._start_container(task, container)

    def _signal(self, task: Task) -> None:
        if task.last_status is not LastStatus.RUNNING:
            return
        task.last_status = LastStatus.STOPPING
        task.stopping_at = self.region.clock.now()
        self._report(task)
        for container in task.containers:
            if container.handle is not None and not container.is_over:
                # From SIGTERM to SIGKILL.
                timing = self.region.timing
                own = container.definition.get("stopTimeout")
                seconds = timing.stop_timeout if own is None else own * timing.stop_timeout_factor
                container.kill_timer = self.region.clock.call_later(seconds, container.handle.kill)
                container.handle.terminate()

    def _report(self, task: Task) -> None:
        """Publish the end of a container, or that the task stops, once the agent reports it; not after the task's end.

        The agent sends what it has of containers with the next state of their task, or else every 20 seconds
        (aws/amazon-ecs-agent, agent/eventhandler/task_handler.go).
        """
        seconds = self.region.timing.container_report
        if not seconds or all(each.exit_code is None for each in task.containers):
            self.publish(task)
            return

        def report() -> None:
            if not all(each.is_over for each in task.containers):
                self.publish(task)

        self.region.clock.call_later(seconds, lambda: self._by_agent(task, report))

    def _finish(self, task: Task) -> None:
        if task.last_status in (LastStatus.DEPROVISIONING, LastStatus.STOPPED):
            return
        now = self.region.clock.now()
        task.stopping_at = task.stopping_at or now
        # The agent notes when the first essential container ended, by its own clock, connected or not
        # (aws/amazon-ecs-agent, Task.RecordExecutionStoppedAt).
        ends = (each.ended_at for each in task.containers if each.essential and each.ended_at)
        task.execution_stopped_at = min(ends, default=now)
        task.last_status = LastStatus.DEPROVISIONING
        for container in task.containers:
            container.last_status = "STOPPED"
        self.publish(task)
        self._later(task, self.region.timing.deprovisioning, lambda: self._stopped(task))

    def _stopped(self, task: Task) -> None:
        _cancel(task)
        task.last_status = LastStatus.STOPPED
        task.stopped_at = self.region.clock.now()
        for container in task.containers:
            container.last_status = "STOPPED"
            container.handle = None
        instance = task.instance
        if instance is not None:
            task.was_connected = instance.agent_connected
            placement.release(instance, task)
        self.publish(task)
        if instance is not None and instance.is_registered and instance.is_alive:
            self._publish_resources(instance)
        for listener in self.on_stopped:
            listener(task)


def _cancel(task: Task) -> None:
    timers = [task.step_timer, task.provisioning_timer, *(container.kill_timer for container in task.containers)]
    for timer in timers:
        if timer is not None:
            timer.cancel()


def _missing_device(task: Task, container: Container) -> str:
    """Return Docker's error where an instance has not a Neuron device that a container names; empty if it has all."""
    devices = container.definition.get("linuxParameters", {}).get("devices", [])
    found = task.instance.shape.neuron_devices if task.instance is not None else 0
    for path in (str(each.get("hostPath", "")) for each in devices):
        number = _NEURON_DEVICE.fullmatch(path)
        if number is not None and int(number["number"]) >= found:
            return f'error gathering device information while adding custom device "{path}": no such file or directory'
    return ""


def _lacks_core_0(container: Container) -> bool:
    """Return whether a container has Neuron devices, and none of them as its /dev/neuron0."""
    devices = container.definition.get("linuxParameters", {}).get("devices", [])
    paths = [str(each.get("containerPath") or each.get("hostPath", "")) for each in devices]
    return any(map(_NEURON_DEVICE.fullmatch, paths)) and "/dev/neuron0" not in paths
