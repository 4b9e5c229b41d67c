"""The launch templates of the region, which are given: the simulator does not serve their actions."""

from collections.abc import Iterable, Mapping
from typing import Any

from relaunch_local.ecs.engine.settings import LaunchTemplate, LaunchTemplateVersion
from relaunch_local.ecs.errors import EcsError


class LaunchTemplates:
    """Launch templates by ID and by name."""

    def __init__(self, templates: Iterable[LaunchTemplate] = ()) -> None:
        """Start with these."""
        self._by_id: dict[str, LaunchTemplate] = {}
        for template in templates:
            self.put(template)

    def put(self, template: LaunchTemplate) -> None:
        """Add a launch template, or replace the one with its ID."""
        self._by_id[template.template_id] = template

    def find(self, specification: Mapping[str, Any]) -> tuple[LaunchTemplate, int, LaunchTemplateVersion]:
        """Return the template of a LaunchTemplateSpecification, the number of its version, and the version.

        Raises:
            EcsError: InvalidLaunchTemplateId.NotFound, InvalidLaunchTemplateName.NotFoundException,
                InvalidLaunchTemplateId.VersionNotFound, InvalidLaunchTemplateVersion.Malformed.
        """
        template = self._template(specification)
        number = _number(template, str(specification["Version"]))
        if not 1 <= number <= len(template.versions):
            message = f"Could not find the specified version {number} for the launch template with ID"
            raise EcsError("InvalidLaunchTemplateId.VersionNotFound", f"{message} {template.template_id}.")
        return template, number, template.versions[number - 1]

    def _template(self, specification: Mapping[str, Any]) -> LaunchTemplate:
        if "LaunchTemplateId" in specification:
            template_id = specification["LaunchTemplateId"]
            if template_id not in self._by_id:
                message = f"The specified launch template, with template ID {template_id}, does not exist."
                raise EcsError("InvalidLaunchTemplateId.NotFound", message)
            return self._by_id[template_id]
        name = specification["LaunchTemplateName"]
        named = next((each for each in self._by_id.values() if each.name == name), None)
        if named is None:
            message = f"The specified launch template, with template name {name}, does not exist."
            raise EcsError("InvalidLaunchTemplateName.NotFoundException", message)
        return named


def _number(template: LaunchTemplate, version: str) -> int:
    known = {"$Latest": len(template.versions), "$Default": template.default_version}
    if version not in known and not version.isdecimal():
        message = f"The launch template version {version} is not a number, $Latest or $Default."
        raise EcsError("InvalidLaunchTemplateVersion.Malformed", message)
    return known[version] if version in known else int(version)
