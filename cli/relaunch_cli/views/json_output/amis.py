"""Machine images."""

from collections.abc import Mapping, Sequence

from relaunch.core.offerings.amis import Ami
from relaunch_cli.views.json_output.values import JsonObject


def amis_json(images: Sequence[Ami], rejections: Mapping[str, str]) -> JsonObject:
    """Return the document of `amis`; `rejections` says of types why the images do not run on them."""
    return {"images": [_ami_json(image) for image in images], "misfits": dict(rejections)}


def _ami_json(image: Ami) -> JsonObject:
    return {
        "kind": image.kind,
        "system": image.system,
        "region": image.region,
        "parameter": image.parameter,
        "image_id": image.image_id,
        "image_name": image.image_name,
        "agent_version": image.agent_version,
        "runtime_version": image.runtime_version,
        "driver_version": image.driver_version,
    }
