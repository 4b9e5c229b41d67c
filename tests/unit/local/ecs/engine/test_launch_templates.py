import pytest

from relaunch_local.ecs import EcsError, LaunchTemplate, LaunchTemplateVersion
from relaunch_local.ecs.engine.launch_templates import LaunchTemplates

FIRST, SECOND = LaunchTemplateVersion(cluster="a"), LaunchTemplateVersion(cluster="b")
TEMPLATES = LaunchTemplates([LaunchTemplate("lt-1", "hosts", (FIRST, SECOND))])


@pytest.mark.parametrize(
    ("version", "expected"), [("1", FIRST), ("2", SECOND), ("$Default", FIRST), ("$Latest", SECOND)]
)
@pytest.mark.parametrize("named", [{"LaunchTemplateId": "lt-1"}, {"LaunchTemplateName": "hosts"}])
def test_a_version_is_found(named: dict[str, str], version: str, expected: LaunchTemplateVersion) -> None:
    assert TEMPLATES.find({**named, "Version": version})[2] is expected


@pytest.mark.parametrize(
    ("specification", "code"),
    [
        ({"LaunchTemplateId": "lt-2", "Version": "1"}, "InvalidLaunchTemplateId.NotFound"),
        ({"LaunchTemplateName": "other", "Version": "1"}, "InvalidLaunchTemplateName.NotFoundException"),
        ({"LaunchTemplateId": "lt-1", "Version": "3"}, "InvalidLaunchTemplateId.VersionNotFound"),
        ({"LaunchTemplateId": "lt-1", "Version": "0"}, "InvalidLaunchTemplateId.VersionNotFound"),
        ({"LaunchTemplateId": "lt-1", "Version": "newest"}, "InvalidLaunchTemplateVersion.Malformed"),
    ],
)
def test_what_does_not_exist_is_said(specification: dict[str, str], code: str) -> None:
    with pytest.raises(EcsError) as caught:
        TEMPLATES.find(specification)
    assert caught.value.code == code


def test_a_template_is_replaced() -> None:
    templates = LaunchTemplates([LaunchTemplate("lt-1", "hosts", (FIRST,))])
    templates.put(LaunchTemplate("lt-1", "hosts", (FIRST, SECOND), default_version=2))

    assert templates.find({"LaunchTemplateId": "lt-1", "Version": "$Default"})[1:] == (2, SECOND)
