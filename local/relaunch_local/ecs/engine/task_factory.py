"""Creates the tasks of a RunTask request."""

from dataclasses import dataclass

from relaunch_local.ecs.engine.model import CapacityProvider, Cluster, Container, JsonObject, LastStatus, Task
from relaunch_local.ecs.engine.region import Region
from relaunch_local.ecs.errors import invalid_parameter
from relaunch_local.ecs.rules.placement import Placement
from relaunch_local.ecs.rules.requirements import Requirement, requirement_of


@dataclass(frozen=True, slots=True)
class TaskFactory:
    """A RunTask request and what its tasks have in common."""

    region: Region
    cluster: Cluster
    request: JsonObject
    definition: JsonObject
    placement: Placement
    tags: list[JsonObject]
    token: tuple[str, str] | None

    def make(self, provider: CapacityProvider | None) -> Task:
        """Return a new task; raises InvalidParameterException for invalid sizes."""
        overrides = self.request.get("overrides", {})
        task_id = self.region.ids.hexadecimal()
        try:
            requirement = requirement_of(self.definition, overrides)
        except ValueError as error:
            raise invalid_parameter(str(error)) from error
        return Task(
            arn=self.region.arns.task(self.cluster.name, task_id),
            task_id=task_id,
            cluster=self.cluster,
            definition=self.definition,
            overrides=overrides,
            requirement=requirement,
            placement=self.placement,
            containers=[
                self._container(task_id, each, requirement) for each in self.definition["containerDefinitions"]
            ],
            group=self.request.get("group") or f"family:{self.definition['family']}",
            created_at=self.region.clock.now(),
            provider=provider,
            started_by=self.request.get("startedBy"),
            tags=list(self.tags),
            network=self.request.get("networkConfiguration"),
            enable_execute_command=self.request.get("enableExecuteCommand", False),
            client_token=self.token,
            last_status=LastStatus.PENDING if provider is None else LastStatus.PROVISIONING,
        )

    def register(self, task: Task) -> None:
        """Add the task to its cluster."""
        self.cluster.tasks[task.task_id] = task
        if task.started_by:
            self.cluster.by_started_by.setdefault(task.started_by, {})[task.task_id] = task

    def _container(self, task_id: str, definition: JsonObject, requirement: Requirement) -> Container:
        gpu_request = dict(requirement.gpu_requests).get(definition["name"])
        arn = self.region.arns.container(self.cluster.name, task_id, self.region.ids.uuid())
        return Container(arn, definition["name"], definition, definition["essential"], gpu_request=gpu_request)
