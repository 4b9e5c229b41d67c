"""The images of the launch templates of machines."""

from dataclasses import dataclass

from relaunch.core.checks import Check, is_ok, problem
from relaunch_cli.deployment.shared_images import COPY_IMAGE

PARAMETER_PREFIX = "resolve:ssm:"


@dataclass(frozen=True, slots=True)
class TemplateFacts:
    """A version of a launch template: its image as written, and the image's ID and state, empty if there is none.

    `exists` is False if there is no such template or version; `is_shared` is True for an image of another account.
    """

    exists: bool = True
    image: str = ""
    image_id: str = ""
    image_state: str = ""
    is_shared: bool = False


def check_launch_template(kind: str, template: str, facts: TemplateFacts) -> Check:
    """Check that a version of a launch template (`lt-…:7`) is there, and that its image resolves."""
    name = f"launch template {kind}"
    if not facts.exists:
        text = f"MachineLaunchTemplates names {template}, which does not exist"
        return problem(name, text, "relaunch deploy")
    parameter = facts.image.removeprefix(PARAMETER_PREFIX)
    if parameter != facts.image and not facts.image_id:
        text = f"{template} takes its image from the parameter {parameter}, which does not exist or has no image"
        return problem(name, text, "relaunch amis, which shows the region's images; then: relaunch deploy")
    if facts.image_state != "available":
        state = facts.image_state or "gone"
        text = f"{template} has the image {facts.image_id or facts.image or 'none'}, which is {state}"
        return problem(name, text, f"relaunch deploy {kind.title()}ImageId=resolve:ssm:..., of `relaunch amis`")
    if facts.is_shared:
        text = f"{template} has the image {facts.image_id} of another account, so that every launch is denied"
        return problem(
            name, text, f"{COPY_IMAGE.format(facts.image_id)}; then: relaunch deploy {kind.title()}ImageId=..."
        )
    return is_ok(name, f"{template} has {facts.image_id}")
