"""List and describe actions of tasks and container instances, and what changes container instances."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from relaunch.core.task_definitions.query_language import ExpressionError, parse_expression
from relaunch_local.ecs.engine.clusters import Clusters
from relaunch_local.ecs.engine.identifiers import last_part
from relaunch_local.ecs.engine.model import Cluster, ContainerInstanceStatus, Instance, JsonObject, Task
from relaunch_local.ecs.engine.paging import page_of
from relaunch_local.ecs.engine.placement import lookup_of
from relaunch_local.ecs.engine.region import Region
from relaunch_local.ecs.engine.tasks import TaskLifecycle
from relaunch_local.ecs.engine.views import container_instance_view, task_view
from relaunch_local.ecs.errors import EcsError, invalid_parameter, refuse
from relaunch_local.ecs.rules.attributes import check_attributes, check_custom_count

MAX_DESCRIBED = 100
MAX_UPDATED = 10
_TASK_ID = re.compile(r"[0-9a-fA-F-]{32}|[0-9a-fA-F-]{36}")
_FAMILY = re.compile(r"[a-zA-Z0-9\-_]+")
_OTHER_FILTERS = ("containerInstance", "family", "serviceName", "launchType", "daemonName")


@dataclass(slots=True)
class Queries:
    """The list and describe actions of a region."""

    region: Region
    clusters: Clusters
    lifecycle: TaskLifecycle

    def find_task(self, cluster: Cluster, name: str) -> Task | None:
        """Return a task by id or ARN; raises InvalidParameterException for an invalid id or another's ARN."""
        self.clusters.forget_old(cluster)
        task_id = self.region.arns.own_id(cluster.name, name)
        refuse(not _TASK_ID.fullmatch(task_id), "taskId length should be one of [32,36]")
        return cluster.tasks.get(task_id) or cluster.stopped.get(task_id)

    def describe_tasks(self, request: JsonObject) -> JsonObject:
        """DescribeTasks, at most 100."""
        cluster = self.clusters.get(request.get("cluster"))
        names = request["tasks"]
        refuse(not names, "Tasks cannot be empty.")
        refuse(len(names) > MAX_DESCRIBED, f"taskIds can have at most {MAX_DESCRIBED} items.")
        with_tags = "TAGS" in request.get("include", ())
        tasks = []
        failures = []
        for name in names:
            task = self.find_task(cluster, name)
            if task is None:
                failures.append({"arn": self.region.arns.task(cluster.name, last_part(name)), "reason": "MISSING"})
            else:
                tasks.append(task_view(task, with_tags=with_tags))
        return {"tasks": tasks, "failures": failures}

    def list_tasks(self, request: JsonObject) -> JsonObject:
        """ListTasks; `startedBy` cannot be combined with other filters."""
        cluster = self.clusters.get(request.get("cluster"))
        status = request.get("desiredStatus", "RUNNING")
        refuse(status not in ("RUNNING", "PENDING", "STOPPED"), "Invalid desiredStatus.")
        others = [name for name in _OTHER_FILTERS if name in request]
        refuse("startedBy" in request and bool(others), f"startedBy cannot be combined with {', '.join(others)}.")
        refuse(not _FAMILY.fullmatch(request.get("family", "any")), f"family must match ^{_FAMILY.pattern}$")
        if "serviceName" in request:
            raise EcsError("ServiceNotFoundException", "Service not found.")
        self.clusters.forget_old(cluster)
        tasks = self._listed(cluster, request)
        return page_of("taskArns", [task.arn for task in tasks if task.listed_as == status], request)

    def _listed(self, cluster: Cluster, request: JsonObject) -> Iterable[Task]:
        if "startedBy" in request:
            return list(cluster.by_started_by.get(request["startedBy"], {}).values())
        instance = None
        if "containerInstance" in request:
            instance = self._find_instance(cluster, request["containerInstance"])
            refuse(instance is None, "The referenced container instance was not found.")
        return [
            task
            for task in (*cluster.tasks.values(), *cluster.stopped.values())
            if instance in (None, task.instance)
            and request.get("family", task.definition["family"]) == task.definition["family"]
            and request.get("launchType", task.launch_type) == task.launch_type
        ]

    def describe_container_instances(self, request: JsonObject) -> JsonObject:
        """DescribeContainerInstances, at most 100."""
        cluster = self.clusters.get(request.get("cluster"))
        return _described(*self._named_instances(cluster, request["containerInstances"]))

    def list_container_instances(self, request: JsonObject) -> JsonObject:
        """ListContainerInstances, with a filter in the cluster query language; all statuses by default."""
        cluster = self.clusters.get(request.get("cluster"))
        status = request.get("status")
        expression = None
        if "filter" in request:
            try:
                expression = parse_expression(request["filter"])
            except ExpressionError as error:
                raise invalid_parameter(f"Invalid filter: {error}") from error
        arns = [
            instance.arn
            for instance in cluster.container_instances.values()
            if status in (None, instance.status) and (expression is None or expression.holds(lookup_of(instance)))
        ]
        return page_of("containerInstanceArns", arns, request)

    def update_container_instances(self, request: JsonObject) -> JsonObject:
        """UpdateContainerInstancesState: no tasks are placed on DRAINING instances; standalone tasks keep running."""
        cluster = self.clusters.get(request.get("cluster"))
        status = request["status"]
        refuse(status not in ("ACTIVE", "DRAINING"), "Container instance status must be ACTIVE or DRAINING.")
        instances, failures = self._named_instances(cluster, request["containerInstances"], MAX_UPDATED)
        for instance in instances:
            if instance.status != status:
                instance.status = ContainerInstanceStatus(status)
                self.lifecycle.publish_container_instance(instance)
        return _described(instances, failures)

    def deregister_container_instance(self, request: JsonObject) -> Instance:
        """Return the container instance to deregister; the EC2 instance is not ended.

        Raises:
            EcsError: InvalidParameterException: it is unknown, or has tasks and `force` is not set.
        """
        cluster = self.clusters.get(request.get("cluster"))
        instance = self._find_instance(cluster, request["containerInstance"])
        if instance is None:
            raise invalid_parameter("The referenced container instance was not found.")
        refuse(bool(instance.tasks) and not request.get("force"), "Found running tasks on the instance.")
        return instance

    def put_attributes(self, request: JsonObject) -> JsonObject:
        """PutAttributes on container instances: all attributes are set, or none."""
        cluster = self.clusters.get(request.get("cluster"))
        check_attributes(request["attributes"])
        changed: dict[str, dict[str, str]] = {}
        answer = []
        for attribute in request["attributes"]:
            instance = self._find_instance(cluster, attribute["targetId"])
            if instance is None:
                raise EcsError("TargetNotFoundException", "The specified target was not found.")
            attributes = changed.setdefault(last_part(instance.arn), dict(instance.attributes))
            attributes[attribute["name"]] = attribute.get("value", "")
            answer.append({key: attribute[key] for key in ("name", "value") if key in attribute})
            answer[-1]["targetId"] = instance.arn
        for attributes in changed.values():
            check_custom_count(attributes)
        for key, attributes in changed.items():
            cluster.container_instances[key].attributes = attributes
        return {"attributes": answer}

    def _named_instances(
        self, cluster: Cluster, names: list[str], most: int = MAX_DESCRIBED
    ) -> tuple[list[Instance], list[JsonObject]]:
        refuse(not names, "Container instances cannot be empty.")
        refuse(len(names) > most, f"instanceIds can have at most {most} items.")
        instances = []
        failures = []
        for name in names:
            instance = self._find_instance(cluster, name)
            if instance is None:
                arn = self.region.arns.container_instance(cluster.name, last_part(name))
                failures.append({"arn": arn, "reason": "MISSING"})
            else:
                instances.append(instance)
        return instances, failures

    def _find_instance(self, cluster: Cluster, name: str) -> Instance | None:
        return cluster.container_instances.get(self.region.arns.own_id(cluster.name, name))


def _described(instances: list[Instance], failures: list[JsonObject]) -> JsonObject:
    return {"containerInstances": [container_instance_view(each) for each in instances], "failures": failures}
