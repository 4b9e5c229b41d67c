"""Machine images."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from relaunch.core.offerings.instance_types import Ami
from relaunch_cli.views.json_output.json_time import JsonObject


def amis_json(images: Sequence[Ami], rejections: Mapping[str, str]) -> JsonObject:
    """Return the document of `amis`; `rejections` says of types why the images do not run on them."""
    return {"images": [asdict(image) for image in images], "misfits": dict(rejections)}
