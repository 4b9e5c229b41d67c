"""Task definitions: families and their revisions."""

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from relaunch_local.ecs.engine.identifiers import last_part
from relaunch_local.ecs.engine.model import JsonObject
from relaunch_local.ecs.engine.paging import page_of
from relaunch_local.ecs.engine.region import Region
from relaunch_local.ecs.errors import client_error, concurrent_registration, invalid_parameter, refuse
from relaunch_local.ecs.rules.task_definition import check_definition, compatibilities_of, task_size

_STORED = (
    "family", "taskRoleArn", "executionRoleArn", "networkMode", "containerDefinitions", "volumes",
    "placementConstraints", "requiresCompatibilities", "cpu", "memory", "pidMode", "ipcMode", "proxyConfiguration",
    "ephemeralStorage", "runtimePlatform", "enableFaultInjection", "trustedExecutionConfiguration",
)  # fmt: skip
_CAPABILITY = "com.amazonaws.ecs.capability."
_STATUSES = ("ACTIVE", "INACTIVE", "DELETE_IN_PROGRESS")
MAX_DELETED = 10
_STILL_ACTIVE = "The specified task definition is still in ACTIVE status. Please deregister the target and try again."
_MISSING_REVISION = (
    "The specified task definition does not exist. Specify a valid account, family, revision and try again."
)
_ECR_IMAGE = re.compile(r"^\d{12}\.dkr\.ecr\.")


@dataclass(slots=True)
class TaskDefinitions:
    """The task definitions of a region."""

    _region: Region
    tags: dict[str, list[JsonObject]] = field(default_factory=dict)
    _families: dict[str, dict[int, JsonObject]] = field(default_factory=dict)

    def register(self, request: JsonObject, *, registered_by: str) -> JsonObject:
        """RegisterTaskDefinition: the next revision of the family; revision numbers are never reused."""
        check_definition(request)
        revisions = self._families.setdefault(request["family"], {})
        if revisions and self._is_being_created(revisions[len(revisions)]):
            raise concurrent_registration()
        revision = len(revisions) + 1
        arn = self._region.arns.task_definition(request["family"], revision)
        definition = {member: request[member] for member in _STORED if member in request}
        # `1 vCPU` and `2 GB` come back as `1024` and `2048`.
        definition |= {member: str(number) for member, number in task_size(request).items()}
        definition["containerDefinitions"] = [_completed(each) for each in request["containerDefinitions"]]
        definition |= {
            "taskDefinitionArn": arn,
            "revision": revision,
            "status": "ACTIVE",
            "volumes": request.get("volumes", []),
            "placementConstraints": request.get("placementConstraints", []),
            "requiresAttributes": _required_attributes(request),
            "compatibilities": compatibilities_of(request),
            "registeredAt": self._region.clock.now(),
            "registeredBy": registered_by,
        }
        revisions[revision] = definition
        self.tags[arn] = list(request.get("tags", ()))
        return {"taskDefinition": definition, **({"tags": self.tags[arn]} if self.tags[arn] else {})}

    def deregister(self, name: str) -> JsonObject:
        """DeregisterTaskDefinition: ACTIVE to INACTIVE."""
        _, revision = _family_and_revision(name)
        refuse(revision is None, "Missing revision: the task definition is given as family:revision or as an ARN.")
        definition = self._named(name, "Unable to describe task definition.")
        refuse(definition["status"] != "ACTIVE", "The specified task definition is inactive.")
        definition["status"] = "INACTIVE"
        definition["deregisteredAt"] = self._region.clock.now()
        return {"taskDefinition": definition}

    def delete(self, request: JsonObject) -> JsonObject:
        """DeleteTaskDefinitions, at most 10: INACTIVE to DELETE_IN_PROGRESS, in which revisions stay here for good."""
        names = request["taskDefinitions"]
        refuse(not 1 <= len(names) <= MAX_DELETED, f"taskDefinitions has 1 to {MAX_DELETED} items.")
        for name in names:
            refuse(_family_and_revision(name)[1] is None, "Missing revision: a task definition is given with it.")
        deleted: list[JsonObject] = []
        failures = []
        for name in names:
            definition = self._find(name)
            if definition is None:
                failures.append({"arn": name, "reason": _MISSING_REVISION})
            elif definition["status"] == "ACTIVE":
                failures.append({"arn": definition["taskDefinitionArn"], "reason": _STILL_ACTIVE})
            else:
                definition["status"] = "DELETE_IN_PROGRESS"
                definition.setdefault("deleteRequestedAt", self._region.clock.now())
                deleted.append(definition)
        return {"taskDefinitions": deleted, "failures": failures}

    def describe(self, request: JsonObject) -> JsonObject:
        """DescribeTaskDefinition: the named revision, or the latest ACTIVE one of a family."""
        definition = self._named(request["taskDefinition"], "Unable to describe task definition.")
        answer: JsonObject = {"taskDefinition": definition}
        if "TAGS" in request.get("include", ()):
            answer["tags"] = list(self.tags[definition["taskDefinitionArn"]])
        return answer

    def for_run(self, name: str) -> JsonObject:
        """Return the revision for RunTask.

        Raises:
            EcsError: ClientException if it is unknown, InvalidParameterException if it is not ACTIVE.
        """
        definition = self._named(name, "TaskDefinition not found.")
        refuse(self._is_retired(definition), "TaskDefinition is inactive")
        return definition

    def if_known(self, name: str) -> JsonObject:
        """Return the named revision with its tags, or an empty one; used to check permissions."""
        definition = self._find(name)
        return {} if definition is None else {**definition, "tags": self.tags[definition["taskDefinitionArn"]]}

    def list_revisions(self, request: JsonObject) -> JsonObject:
        """ListTaskDefinitions; `familyPrefix` is the full name of a family."""
        status = request.get("status", "ACTIVE")
        sort = request.get("sort", "ASC")
        refuse(status not in _STATUSES, "Invalid status.")
        refuse(sort not in ("ASC", "DESC"), "Invalid sort.")
        prefix = request.get("familyPrefix")
        families = sorted(self._families) if prefix is None else [prefix]
        arns = [
            definition["taskDefinitionArn"]
            for family in families
            for _, definition in sorted(self._families.get(family, {}).items())
            if definition["status"] == status
        ]
        return page_of("taskDefinitionArns", arns if sort == "ASC" else arns[::-1], request)

    def list_families(self, request: JsonObject) -> JsonObject:
        """ListTaskDefinitionFamilies; here `familyPrefix` is a prefix."""
        status = request.get("status", "ALL")
        refuse(status not in ("ACTIVE", "INACTIVE", "ALL"), "Invalid status.")
        families = [
            family
            for family in sorted(self._families)
            if family.startswith(request.get("familyPrefix", "")) and self._has_status(family, status)
        ]
        return page_of("families", families, request)

    def _has_status(self, family: str, status: str) -> bool:
        is_active = any(each["status"] == "ACTIVE" for each in self._families[family].values())
        return status == "ALL" or is_active == (status == "ACTIVE")

    def _is_being_created(self, definition: JsonObject) -> bool:
        registered_at: datetime = definition["registeredAt"]
        return self._region.clock.now() < registered_at + timedelta(seconds=self._region.timing.revision_creation)

    def _is_retired(self, definition: JsonObject) -> bool:
        if definition["status"] != "INACTIVE":
            return bool(definition["status"] != "ACTIVE")
        retired_at: datetime = definition["deregisteredAt"]
        return self._region.clock.now() >= retired_at + timedelta(seconds=self._region.timing.deregistration_lag)

    def _named(self, name: str, refusal: str) -> JsonObject:
        definition = self._find(name)
        if definition is None:
            raise client_error(refusal)
        return definition

    def _find(self, name: str) -> JsonObject | None:
        self._region.arns.refuse_foreign(name)
        family, revision = _family_and_revision(name)
        revisions = self._families.get(family, {})
        if revision is not None:
            return revisions.get(revision)
        return next((each for _, each in sorted(revisions.items(), reverse=True) if each["status"] == "ACTIVE"), None)


def _family_and_revision(name: str) -> tuple[str, int | None]:
    family, colon, revision = last_part(name).partition(":")
    if colon and not revision.isdecimal():
        raise invalid_parameter(f"Invalid revision number. Number: {revision}")
    return family, int(revision) if colon else None


def _completed(container: JsonObject) -> JsonObject:
    defaults: dict[str, Any] = {
        "cpu": 0,
        "essential": True,
        "portMappings": [],
        "environment": [],
        "mountPoints": [],
        "volumesFrom": [],
    }
    return {**defaults, **container}


def _required_attributes(request: JsonObject) -> list[JsonObject]:
    containers = request["containerDefinitions"]
    drivers = {container.get("logConfiguration", {}).get("logDriver") for container in containers} - {None}
    names = {f"{_CAPABILITY}logging-driver.{driver}" for driver in drivers}
    names |= {f"{_CAPABILITY}docker-plugin.{driver}" for driver in _volume_drivers(request)}
    options = [option for container in containers for option in container.get("dockerSecurityOptions", ())]
    volumes = request.get("volumes", ())
    wanted = {
        f"{_CAPABILITY}task-iam-role": "taskRoleArn" in request,
        f"{_CAPABILITY}ecr-auth": any(_ECR_IMAGE.match(container["image"]) for container in containers),
        f"{_CAPABILITY}selinux": any(option.startswith("label:") for option in options),
        f"{_CAPABILITY}apparmor": any(option.startswith("apparmor:") for option in options),
        "ecs.capability.execution-role-awslogs": "executionRoleArn" in request and "awslogs" in drivers,
        "ecs.capability.task-eni": request.get("networkMode") == "awsvpc",
        # Only the agent of Windows instances registers it.
        "ecs.capability.fsxWindowsFileServer": any(
            "fsxWindowsFileServerVolumeConfiguration" in each for each in volumes
        ),
    }
    names |= {name for name, applies in wanted.items() if applies}
    attributes: list[JsonObject] = [{"name": name} for name in sorted(names)]
    platform = request.get("runtimePlatform", {})
    if "cpuArchitecture" in platform:
        attributes.append({"name": "ecs.cpu-architecture", "value": platform["cpuArchitecture"].lower()})
    if "operatingSystemFamily" in platform:
        attributes.append({"name": "ecs.os-family", "value": platform["operatingSystemFamily"]})
    return attributes


def _volume_drivers(request: JsonObject) -> set[str]:
    volumes = (each.get("dockerVolumeConfiguration", {}) for each in request.get("volumes", ()))
    return {each["driver"] for each in volumes if each.get("driver", "local") != "local"}
