"""The permissions that calls require (Service Authorization Reference, "Actions ... for Amazon ECS")."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relaunch_local.ecs.engine.identifiers import Arns, last_part
from relaunch_local.ecs.errors import EcsError
from relaunch_local.iam.permission import Authorize, Permission

_ON_CLUSTER = {
    "ListContainerInstances", "DescribeClusters", "PutClusterCapacityProviders", "CreateCluster",
    "DeregisterContainerInstance",
}  # fmt: skip
_ON_TASK = {"StopTask", "DescribeTasks"}
_ON_INSTANCE = {"DescribeContainerInstances", "UpdateContainerInstancesState"}
_ON_ARN = {"ListTagsForResource", "TagResource", "UntagResource"}


@dataclass(frozen=True, slots=True)
class Authorization:
    """Checks every permission that a call requires."""

    arns: Arns
    authorize: Authorize

    def check(self, access_key: str, action: str, request: Mapping[str, Any], definition: Mapping[str, Any]) -> None:
        """Check an ECS call; `definition` is the revision that RunTask would run, with its tags, or empty.

        Raises:
            EcsError: AccessDeniedException.
        """
        cluster = self.arns.cluster(last_part(request.get("cluster") or "default"))
        context = {"ecs:cluster": cluster} if action in _WITH_CLUSTER_KEY else {}
        for resource in self._resources(action, request, definition):
            self._demand(Permission(access_key, f"ecs:{action}", resource, context))
        if action == "RunTask":
            self._check_run_task(access_key, request, definition)
        if action == "RegisterTaskDefinition":
            if request.get("tags"):
                self._check_tagging(access_key, action, self.arns.task_definition(request["family"], "*"))
            self._check_roles(access_key, request)

    def check_ec2(self, access_key: str, action: str) -> None:
        """Check an EC2 call, on all resources; raises UnauthorizedOperation."""
        if not self.authorize(Permission(access_key, f"ec2:{action}", "*")):
            raise EcsError("UnauthorizedOperation", "You are not authorized to perform this operation.")

    def _check_run_task(self, access_key: str, request: Mapping[str, Any], definition: Mapping[str, Any]) -> None:
        is_propagated = request.get("propagateTags") == "TASK_DEFINITION" and definition.get("tags")
        if request.get("tags") or is_propagated:
            resource = self.arns.task(last_part(request.get("cluster") or "default"), "*")
            self._check_tagging(access_key, "RunTask", resource)
        self._check_roles(access_key, {**definition, **request.get("overrides", {})})

    def _check_tagging(self, access_key: str, action: str, resource: str) -> None:
        self._demand(Permission(access_key, "ecs:TagResource", resource, {"ecs:CreateAction": action}))

    def _check_roles(self, access_key: str, holder: Mapping[str, Any]) -> None:
        for member in ("taskRoleArn", "executionRoleArn"):
            if holder.get(member):
                context = {"iam:PassedToService": "ecs-tasks.amazonaws.com"}
                self._demand(Permission(access_key, "iam:PassRole", holder[member], context))

    def _demand(self, permission: Permission) -> None:
        if not self.authorize(permission):
            message = (
                f"User: {permission.access_key} is not authorized to perform: {permission.action} on resource: "
                f"{permission.resource} because no identity-based policy allows the {permission.action} action"
            )
            raise EcsError("AccessDeniedException", message)

    def _resources(self, action: str, request: Mapping[str, Any], definition: Mapping[str, Any]) -> list[str]:
        cluster = last_part(request.get("cluster") or "default")
        if action == "RunTask":
            return [definition.get("taskDefinitionArn") or self.arns.task_definition(request["taskDefinition"], "*")]
        if action == "RegisterTaskDefinition":
            return [self.arns.task_definition(request["family"], "*")]
        if action in _ON_TASK:
            names = [request["task"]] if action == "StopTask" else request["tasks"]
            return [self.arns.task(cluster, last_part(name)) for name in names]
        if action in _ON_INSTANCE:
            return [self.arns.container_instance(cluster, last_part(name)) for name in request["containerInstances"]]
        if action == "ListTasks":
            return [self.arns.container_instance(cluster, last_part(request.get("containerInstance", "*")))]
        return self._other_resources(action, request, cluster)

    def _other_resources(self, action: str, request: Mapping[str, Any], cluster: str) -> list[str]:
        if action in _ON_CLUSTER:
            names = request.get("clusters") or [request.get("clusterName", cluster)]
            return [self.arns.cluster(last_part(name)) for name in names]
        if action == "PutAttributes":
            targets = [last_part(each.get("targetId", "*")) for each in request["attributes"]]
            return [self.arns.container_instance(cluster, target) for target in targets]
        if action == "DeleteTaskDefinitions":
            names = [last_part(name).partition(":") for name in request["taskDefinitions"]]
            return [self.arns.task_definition(family, revision or "*") for family, _, revision in names]
        if action in _ON_ARN:
            return [request["resourceArn"]]
        if action in ("CreateCapacityProvider", "DescribeCapacityProviders"):
            names = [request["name"]] if "name" in request else request.get("capacityProviders") or ["*"]
            return [self.arns.capacity_provider(last_part(name)) for name in names]
        return ["*"]


_WITH_CLUSTER_KEY = frozenset({"RunTask", "ListTasks", "ListServices", "PutAttributes", *_ON_TASK, *_ON_INSTANCE})
"""Actions with the condition key ecs:cluster; the cluster is the resource of others."""
