from typing import Any

import pytest

from fakes.simulated_region import SimulatedRegion, container
from relaunch_local.ecs.errors import EcsError, refuse
from relaunch_local.ecs.rules.tags import check_tags


def tag(key: str, value: str = "") -> dict[str, str]:
    return {"key": key, "value": value}


@pytest.mark.parametrize(
    "tags",
    [
        pytest.param([], id="none"),
        pytest.param([tag("k" * 128, "v" * 256)], id="longest"),
        pytest.param([tag("größe 東京 ½", "a_b.c:d/e=f+g-h@i")], id="letters-numbers-spaces-of-any-script"),
        pytest.param([tag("Aws", "aws:x")], id="aws-is-no-prefix"),
        pytest.param([{"key": "k"}], id="without-value"),
        pytest.param([tag(str(number)) for number in range(50)], id="tags-50"),
    ],
)
def test_valid_tags_pass(tags: list[dict[str, Any]]) -> None:
    check_tags(tags, refuse)


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        pytest.param([tag(str(number)) for number in range(51)], "more than 50", id="tags-51"),
        pytest.param([tag("k"), tag("k")], "duplicate", id="same-key"),
        pytest.param([tag("")], "1 to 128", id="empty-key"),
        pytest.param([tag("k" * 129)], "1 to 128", id="long-key"),
        pytest.param([tag("k", "v" * 257)], "at most 256", id="long-value"),
        pytest.param([tag("AWS:k")], "aws:", id="reserved"),
        pytest.param([tag("a,b")], "invalid characters", id="comma-in-key"),
        pytest.param([tag("k", "{}")], "invalid characters", id="braces-in-value"),
        pytest.param([tag("k\n")], "invalid characters", id="line-feed"),
    ],
)
def test_invalid_tags_are_refused(tags: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(EcsError, match=message):
        check_tags(tags, refuse)


def test_each_action_refuses_them_with_its_code(offered: SimulatedRegion) -> None:
    bad = [tag("a,b")]
    strategy = [{"capacityProvider": "g5-spot"}]

    run = offered.error_code(
        "run_task", cluster="c", taskDefinition="train", capacityProviderStrategy=strategy, tags=bad
    )
    register = offered.error_code("register_task_definition", family="f", containerDefinitions=[container()], tags=bad)

    assert (run, register) == ("InvalidParameterException", "ClientException")
