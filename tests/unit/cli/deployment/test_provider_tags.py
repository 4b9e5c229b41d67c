"""Tags in the template of a capacity provider."""

import pytest

from relaunch_cli.deployment.provider_tags import with_tags
from relaunch_cli.deployment.source import find_source
from relaunch_local.templates.document import parse_yaml

TEMPLATE = find_source().capacity_provider


def test_group_instances_and_volumes_have_them() -> None:
    resources = parse_yaml(with_tags(TEMPLATE, {"cost-center": "ml 42: a=b", "Name": "gpu"}))["Resources"]

    tags = [{"Key": "cost-center", "Value": "ml 42: a=b"}, {"Key": "Name", "Value": "gpu"}]
    assert resources["LaunchTemplate"]["Properties"]["LaunchTemplateData"]["TagSpecifications"] == [
        {"ResourceType": "instance", "Tags": tags},
        {"ResourceType": "volume", "Tags": tags},
    ]
    group = resources["Group"]["Properties"]["Tags"]
    assert [each["Key"] for each in group] == ["AmazonECSManaged", "Name", "cost-center"]
    assert group[-1] == {**tags[0], "PropagateAtLaunch": True}


@pytest.mark.parametrize("template", [TEMPLATE, "Resources: {}"])
def test_without_tags_a_template_is_as_it_was(template: str) -> None:
    assert with_tags(template, {}) == template
