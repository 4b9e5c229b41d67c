import pytest
from botocore.exceptions import ClientError

from fakes.simulated_region import SimulatedRegion


@pytest.mark.parametrize("kind", ["cluster/c", "capacity-provider/g5-spot", "task-definition/train:1"])
def test_tags_are_set_overwritten_and_removed(region: SimulatedRegion, kind: str) -> None:
    region.provider()
    region.register()
    arn = f"arn:aws:ecs:us-east-1:111122223333:{kind}"

    region.ecs.tag_resource(resourceArn=arn, tags=[{"key": "a", "value": "1"}, {"key": "b", "value": "1"}])
    region.ecs.tag_resource(resourceArn=arn, tags=[{"key": "a", "value": "2"}])
    region.ecs.untag_resource(resourceArn=arn, tagKeys=["b"])

    assert region.ecs.list_tags_for_resource(resourceArn=arn)["tags"] == [{"key": "a", "value": "2"}]


def test_a_resource_keeps_its_tags_if_a_new_one_is_invalid(region: SimulatedRegion) -> None:
    arn = "arn:aws:ecs:us-east-1:111122223333:cluster/c"

    code = region.error_code("tag_resource", resourceArn=arn, tags=[{"key": "a", "value": "1"}, {"key": "b,c"}])

    assert code == "InvalidParameterException"
    assert region.ecs.list_tags_for_resource(resourceArn=arn)["tags"] == []


@pytest.mark.parametrize("kind", ["cluster/x", "capacity-provider/x", "task-definition/x:1", "task/c/x", "service/x"])
def test_what_is_not_there_has_no_tags(region: SimulatedRegion, kind: str) -> None:
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        region.ecs.list_tags_for_resource(resourceArn=f"arn:aws:ecs:us-east-1:111122223333:{kind}")
