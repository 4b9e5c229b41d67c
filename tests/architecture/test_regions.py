"""The application can be deployed in every region that is not refused: CloudFormation has all of its resource types.

cfn-lint has the types that are registered in each region, from AWS's own schemas.
"""

import json
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import boto3
import pytest

from architecture.conftest import Template
from architecture.written_template import written_template
from fakes.repository import REPOSITORY
from relaunch_cli.aws.regions import check_partition
from relaunch_cli.deployment.function_urls import check_function_urls
from relaunch_cli.errors import CommandError

# Those that the command deploys as they are written; SAM makes more types of the application's.
WRITTEN = sorted(f"infrastructure/{each.name}" for each in (REPOSITORY / "infrastructure").glob("*.yaml"))


@pytest.fixture(scope="module")
def types_of_regions() -> Mapping[str, frozenset[str]]:
    """The resource types by region; cfn-lint itself takes seconds to import."""
    spec = find_spec("cfnlint")
    assert spec is not None
    assert spec.origin is not None
    files = Path(spec.origin).with_name("data").glob("schemas/providers/*-*.json")
    return {each.stem: frozenset(json.loads(each.read_text(encoding="utf-8"))) for each in files}


@pytest.fixture(scope="module")
def types_of_templates(template: Template) -> frozenset[str]:
    documents = [template, *map(written_template, WRITTEN)]
    return frozenset(each["Type"] for document in documents for each in document.resources.values())


@pytest.fixture(scope="module")
def session() -> boto3.Session:
    return boto3.Session(region_name="us-east-1")


def is_refused(region: str, session: boto3.Session) -> bool:
    try:
        check_partition(region, session)
        check_function_urls(region)
    except CommandError:
        return True
    return False


def test_exactly_the_regions_without_a_resource_type_are_refused(
    session: boto3.Session, types_of_regions: Mapping[str, frozenset[str]], types_of_templates: frozenset[str]
) -> None:
    regions = [each for each in types_of_regions if session.get_partition_for_region(each) == "aws"]
    lacking = {each: types for each in regions if (types := types_of_templates - types_of_regions[each])}

    assert {each for each in regions if is_refused(each, session)} == set(lacking)
    assert all(types == {"AWS::Lambda::Url"} for types in lacking.values())
    assert len(regions) > 30


def test_the_region_that_is_named_instead_is_not_refused(
    session: boto3.Session, types_of_regions: Mapping[str, frozenset[str]]
) -> None:
    instead: list[str] = []
    for region in types_of_regions:
        try:
            check_function_urls(region)
        except CommandError as refused:
            instead += re.findall(r"AWS_REGION=([\w-]+)", refused.message)

    assert instead
    assert all(each in types_of_regions and not is_refused(each, session) for each in instead)
