"""The process of a container: its command, environment and log stream."""

from collections.abc import Callable

from relaunch.core.task_definitions.reservation import container_overrides
from relaunch_local.ecs.engine.identifiers import last_part
from relaunch_local.ecs.engine.model import Container, Task
from relaunch_local.ecs.processes.port import LogTarget, ProcessSpec

OnExit = Callable[[int, str | None], None]


def process_spec(task: Task, container: Container, on_exit: OnExit) -> ProcessSpec:
    """Return what the agent would pass to Docker for this container."""
    override = container_overrides(task.overrides).get(container.name, {})
    command = override.get("command", container.definition.get("command", ()))
    environment = {
        each["name"]: each["value"]
        for each in (*container.definition.get("environment", ()), *override.get("environment", ()))
    }
    is_on_host = task.definition.get("networkMode") == "host"
    return ProcessSpec(
        task_arn=task.arn,
        family=task.definition["family"],
        container=container.name,
        image=container.definition["image"],
        command=(*container.definition.get("entryPoint", ()), *command),
        environment={**_ecs_environment(task, container), **environment},
        on_exit=on_exit,
        log_target=_log_target(task, container),
        instance_id=task.instance.instance_id if task.instance else "",
        started_by=task.started_by or "",
        has_entry_point=bool(container.definition.get("entryPoint")),
        address=task.instance.private_address if task.instance and is_on_host else "",
        has_init=bool(container.definition.get("linuxParameters", {}).get("initProcessEnabled")),
    )


def _ecs_environment(task: Task, container: Container) -> dict[str, str]:
    given = {"AWS_EXECUTION_ENV": "AWS_ECS_EC2", "HOSTNAME": task.task_id[:12]}
    if container.gpu_ids:
        given["NVIDIA_VISIBLE_DEVICES"] = ",".join(container.gpu_ids)
    return given if container.gpu_request is None else given | container.gpu_request.environment


def _log_target(task: Task, container: Container) -> LogTarget | None:
    configuration = container.definition.get("logConfiguration", {})
    if configuration.get("logDriver") != "awslogs":
        return None
    options = configuration["options"]
    prefix = options.get("awslogs-stream-prefix")
    stream = f"{prefix}/{container.name}/{last_part(task.arn)}" if prefix else str(container.runtime_id)
    return LogTarget(options["awslogs-group"], stream)
