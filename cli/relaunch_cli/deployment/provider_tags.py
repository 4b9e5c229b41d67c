"""Tags of the account's own on what the groups of capacity providers launch.

CloudFormation makes no list of tags of a parameter, so they are written into the template. Tags of a group are not
propagated to volumes: those are in the launch template ("Tag Auto Scaling groups and instances", EC2 Auto Scaling User
Guide), whose instance tags give way to the group's of the same key.
"""

import json
from collections.abc import Mapping

LAUNCHED = "        # relaunch deploy: tags of instances and volumes\n"
"""The line of infrastructure/capacity-provider.yaml in the place of which the launch template has its tags."""
GROUP = "        # relaunch deploy: tags of the group\n"
_OF_THE_GROUP = ("AmazonECSManaged", "Name")


def with_tags(template: str, tags: Mapping[str, str]) -> str:
    """Return the template of a capacity provider, with these tags on its group, instances and volumes."""
    if not tags:
        return template
    written = [{"Key": key, "Value": value} for key, value in tags.items()]
    launched = [{"ResourceType": kind, "Tags": written} for kind in ("instance", "volume")]
    own = [{**each, "PropagateAtLaunch": True} for each in written if each["Key"] not in _OF_THE_GROUP]
    for place, text in (
        (LAUNCHED, f"        TagSpecifications: {json.dumps(launched)}\n"),
        (GROUP, "".join(f"        - {json.dumps(each)}\n" for each in own)),
    ):
        template = template.replace(place, text)
    return template
