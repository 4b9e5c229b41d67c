"""Tags of clusters, capacity providers, task definitions and tasks."""

from dataclasses import dataclass

from relaunch_local.ecs.engine.clusters import Clusters
from relaunch_local.ecs.engine.identifiers import last_part
from relaunch_local.ecs.engine.model import JsonObject
from relaunch_local.ecs.engine.region import Region
from relaunch_local.ecs.engine.task_definitions import TaskDefinitions
from relaunch_local.ecs.errors import EcsError, invalid_parameter, refuse
from relaunch_local.ecs.rules.tags import check_tags


@dataclass(slots=True)
class Tagging:
    """TagResource, UntagResource, ListTagsForResource."""

    region: Region
    clusters: Clusters
    definitions: TaskDefinitions

    def list_tags(self, request: JsonObject) -> JsonObject:
        """ListTagsForResource."""
        return {"tags": [dict(tag) for tag in self._tags(request["resourceArn"])]}

    def tag(self, request: JsonObject) -> JsonObject:
        """TagResource: values of existing keys are replaced."""
        tags = self._tags(request["resourceArn"])
        keys = {tag.get("key") for tag in request["tags"]}
        changed = [tag for tag in tags if tag["key"] not in keys] + list(request["tags"])
        check_tags([tag for tag in changed if not tag["key"].startswith("aws:ecs:")], refuse)
        tags[:] = changed
        return {}

    def untag(self, request: JsonObject) -> JsonObject:
        """UntagResource."""
        tags = self._tags(request["resourceArn"])
        tags[:] = [tag for tag in tags if tag["key"] not in request["tagKeys"]]
        return {}

    def _tags(self, arn: str) -> list[JsonObject]:
        resource = arn.split(":", 5)[-1]
        kind, _, rest = resource.partition("/")
        if not arn.startswith("arn:") or not rest:
            raise invalid_parameter("Invalid ARN.")
        self.region.arns.refuse_foreign(arn)
        tags = self._found(kind, arn, rest)
        if tags is None:
            raise EcsError("ResourceNotFoundException", "The specified resource could not be found.")
        return tags

    def _found(self, kind: str, arn: str, rest: str) -> list[JsonObject] | None:
        if kind == "cluster":
            cluster = self.clusters.clusters.get(rest)
            return None if cluster is None else cluster.tags
        if kind == "capacity-provider":
            provider = self.clusters.providers.get(rest)
            return None if provider is None else provider.tags
        if kind == "task-definition":
            return self.definitions.tags.get(arn)
        if kind == "task":
            task = self.clusters.get(rest.partition("/")[0]).tasks.get(last_part(rest))
            return None if task is None else task.tags
        return None
