"""DAEMON services: one task of each on every container instance ("Amazon ECS services", Developer Guide).

Their tasks count among those of an instance. Managed scaling ignores them by the documentation; here they keep an
instance for ever, as its users report (aws/containers-roadmap#2814). One that stops is not started again.
"""

from dataclasses import dataclass

from relaunch_local.ecs.engine import placement
from relaunch_local.ecs.engine.clusters import Clusters
from relaunch_local.ecs.engine.model import Cluster, Instance, JsonObject
from relaunch_local.ecs.engine.paging import page_of
from relaunch_local.ecs.engine.region import Region
from relaunch_local.ecs.engine.task_definitions import TaskDefinitions
from relaunch_local.ecs.engine.task_factory import TaskFactory
from relaunch_local.ecs.engine.tasks import TaskLifecycle
from relaunch_local.ecs.rules.placement import placement_of


@dataclass(slots=True)
class Services:
    """Starts the tasks of DAEMON services, and lists services; there are no others."""

    region: Region
    clusters: Clusters
    lifecycle: TaskLifecycle
    definitions: TaskDefinitions

    def add_daemon(self, cluster: Cluster, name: str, task_definition: str) -> None:
        """Run a task of this definition on every instance of the cluster from now on."""
        cluster.daemons[name] = task_definition
        for instance in cluster.container_instances.values():
            self._start(cluster, instance, name)

    def start_daemons(self, instance: Instance) -> None:
        """Start the tasks of the cluster's services on an instance that has registered."""
        for name in instance.cluster.daemons:
            self._start(instance.cluster, instance, name)

    def list_services(self, request: JsonObject) -> JsonObject:
        """ListServices; ten to a page, unless `maxResults` says otherwise."""
        cluster = self.clusters.get(request.get("cluster"))
        names = cluster.daemons if request.get("schedulingStrategy", "DAEMON") == "DAEMON" else ()
        arns = [self.region.arns.service(cluster.name, name) for name in names]
        return page_of("serviceArns", arns, {"maxResults": 10, **request})

    def _start(self, cluster: Cluster, instance: Instance, name: str) -> None:
        definition = self.definitions.for_run(cluster.daemons[name])
        request = {"group": f"service:{name}", "startedBy": f"ecs-svc/{len(cluster.daemons):019d}"}
        where = placement_of(request, definition)
        factory = TaskFactory(self.region, cluster, request, definition, where, [], None)
        task = factory.make(None)
        if placement.fits_now(instance, task):
            factory.register(task)
            self.lifecycle.assign(task, instance)
