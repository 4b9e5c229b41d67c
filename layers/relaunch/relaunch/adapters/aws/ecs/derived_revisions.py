"""Registers, finds and deregisters derived revisions in ECS.

The actions are DescribeTaskDefinition, RegisterTaskDefinition, DeregisterTaskDefinition, ListTaskDefinitions and
ListTaskDefinitionFamilies (Amazon ECS API Reference). RegisterTaskDefinition and DeregisterTaskDefinition share a burst
rate of 20 and a sustained rate of 1 per second ("Request throttling for the Amazon ECS API").
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import ClientError, ParamValidationError

from relaunch.adapters.aws.ecs.pages import read_pages
from relaunch.adapters.aws.errors import aws_errors, error_code
from relaunch.core.launches.derived_revision import DERIVED_FROM, TaskDefinition, has_content, is_derived_family
from relaunch.core.revisions.revision import ACTIVE
from relaunch.ports import Clock, PermanentError

if TYPE_CHECKING:
    from mypy_boto3_ecs import ECSClient

RESPONSE_ONLY_MEMBERS = frozenset(
    {
        "taskDefinitionArn",
        "revision",
        "status",
        "requiresAttributes",
        "compatibilities",
        "registeredAt",
        "registeredBy",
        "deregisteredAt",
        "deleteRequestedAt",
    }
)
"""Members of a described task definition that are not parameters of RegisterTaskDefinition."""

# Reserved for AWS: such tags cannot be set.
_AWS_TAGS = "aws:"
# Size of the caches. A revision never changes.
_MAX_CACHED = 64


class EcsRegistry:
    """Implements RevisionRegistry."""

    def __init__(self, client: "ECSClient", clock: Clock | None = None) -> None:
        self._client = client
        self._clock = clock
        self._loaded: dict[str, TaskDefinition] = {}
        self._active: dict[str, tuple[datetime, str]] = {}

    def load_definition(self, revision_arn: str) -> TaskDefinition:
        if revision_arn not in self._loaded:
            described = self._describe(revision_arn)
            if described is None:
                raise PermanentError(f"the task definition {revision_arn} is gone: it was deleted since the job began")
            while len(self._loaded) >= _MAX_CACHED:
                del self._loaded[next(iter(self._loaded))]
            self._loaded[revision_arn] = _read(*described)
        return self._loaded[revision_arn]

    def find_active(
        self, definition: TaskDefinition, max_age: timedelta = timedelta(0), known_arn: str = ""
    ) -> str | None:
        family = definition.family
        now = self._clock.now() if self._clock else None
        asked_at, arn = self._active.get(family, (None, None))
        if now and asked_at and now - asked_at < max_age:
            return arn
        found = self._find_active(definition, known_arn)
        self._active.pop(family, None)
        if now and found:
            self._active = dict(list(self._active.items())[-_MAX_CACHED + 1 :]) | {family: (now, found)}
        return found

    def _find_active(self, definition: TaskDefinition, known_arn: str) -> str | None:
        newest = self._newest(definition.family)
        if newest is None:
            return None
        described, tags = newest
        arn = str(described["taskDefinitionArn"])
        # Whoever may register in the family may register anything under its name.
        return arn if arn == known_arn or has_content(_read(described, tags), definition) else None

    def _newest(self, family: str) -> tuple[Mapping[str, Any], Mapping[str, str]] | None:
        """Return the newest ACTIVE revision of a derived family with its tags, None if it has none of ours."""
        described = self._describe(family)
        if described is None:
            return None
        definition, tags = described
        # Emulators also return INACTIVE revisions.
        is_active = definition.get("family") == family and definition.get("status") == ACTIVE
        return described if is_active and DERIVED_FROM in tags else None

    def is_active(self, revision_arn: str) -> bool:
        described = self._describe(revision_arn)
        return described is not None and described[0].get("status") == ACTIVE

    def register(self, definition: TaskDefinition) -> str:
        doing = f"registering task definition {definition.family}"
        tags = [{"key": key, "value": value} for key, value in sorted(definition.tags.items())]
        request: dict[str, Any] = {**definition.content, "family": definition.family, "tags": tags}
        with aws_errors(doing):
            try:
                response = self._client.register_task_definition(**request)
            except ParamValidationError as error:
                raise PermanentError(f"{doing}: {error}") from error
        return str(response["taskDefinition"]["taskDefinitionArn"])

    def list_families(self) -> list[str]:
        with aws_errors("listing the families of task definitions"):
            pages = read_pages(self._client.list_task_definition_families, status=ACTIVE)
            return [family for page in pages for family in page["families"] if is_derived_family(family)]

    def deregister_family(self, family: str) -> int:
        # A family with such a name may not be ours: the tag of its newest revision is checked.
        if not is_derived_family(family) or self._newest(family) is None:
            return 0
        with aws_errors(f"deregistering task definition {family}"):
            pages = read_pages(self._client.list_task_definitions, familyPrefix=family, status=ACTIVE)
            arns = [arn for page in pages for arn in page["taskDefinitionArns"]]
            return sum(self._deregister(arn) for arn in arns)

    def _deregister(self, arn: str) -> bool:
        try:
            self._client.deregister_task_definition(taskDefinition=arn)
        except ClientError as error:
            # Already deregistered.
            if "inactive" in str(error.response.get("Error", {}).get("Message", "")).lower():
                return False
            raise
        return True

    def _describe(self, name: str) -> tuple[Mapping[str, Any], Mapping[str, str]] | None:
        with aws_errors(f"describing task definition {name}"):
            try:
                response = self._client.describe_task_definition(taskDefinition=name, include=["TAGS"])
            except ClientError as error:
                # "Unable to describe task definition.": not found, or no ACTIVE revision.
                if error_code(error) == "ClientException":
                    return None
                raise
        tags = {tag["key"]: tag.get("value", "") for tag in response.get("tags") or ()}
        return cast("Mapping[str, Any]", response["taskDefinition"]), tags


def _read(definition: Mapping[str, Any], tags: Mapping[str, str]) -> TaskDefinition:
    """Return the members that RegisterTaskDefinition accepts."""
    content = {
        name: value for name, value in definition.items() if name not in RESPONSE_ONLY_MEMBERS and value is not None
    }
    family = content.pop("family")
    own = {key: value for key, value in tags.items() if not key.lower().startswith(_AWS_TAGS)}
    return TaskDefinition(family, content, own)
