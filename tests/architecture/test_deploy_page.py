"""What docs/deploy.md shows is what the command, the templates and the parser take."""

import re
import textwrap

import pytest
import yaml

from architecture.written_template import written_template
from fakes.repository import REPOSITORY
from relaunch.adapters.definition_file.parser import parse_definitions
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch_cli.deployment.idle_cost import PRICES_OF, idle_costs, total
from relaunch_cli.deployment.named_parameters import read_named
from relaunch_cli.deployment.source import find_source

PAGE = (REPOSITORY / "docs" / "deploy.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def blocks() -> list[str]:
    return [textwrap.dedent(each) for each in re.findall(r"^ *```yaml\n(.*?)^ *```", PAGE, re.DOTALL | re.MULTILINE)]


def test_the_workflow_may_do_no_more_than_it_needs(blocks: list[str]) -> None:
    workflow = yaml.safe_load(blocks[0])
    (job,) = workflow["jobs"].values()

    assert workflow["permissions"] == {}
    assert job["permissions"] == {"contents": "read", "id-token": "write"}
    # Nothing of an event is put into a script.
    assert "${{" not in blocks[0]


def test_the_definition_is_one_that_apply_takes(blocks: list[str]) -> None:
    text = blocks[1].replace("CHECKPOINT_BUCKET_NAME", "acme-checkpoints")
    (definition,) = parse_definitions(text, "relaunch.yaml", load_catalogue())

    assert definition.task_definition == "relaunch-trainer"


def test_the_repository_and_its_default_are_those_of_the_stack(blocks: list[str]) -> None:
    default = written_template("infrastructure/training.yaml").parameters["RepositoryName"]["Default"]

    assert f"repository: {default}," in blocks[1]


def test_every_parameter_of_the_table_is_known() -> None:
    table = PAGE.partition("## Parameters")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
    names = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]

    assert len(names) > 12
    assert set(read_named([f"{name}=a" for name in names], find_source())) == set(names)


def test_the_cost_is_the_one_that_the_command_shows() -> None:
    items = idle_costs(has_machines=True, has_monitoring=True)

    assert f"About {total(items):.1f}0 USD a month" in PAGE
    assert f"it is {sum(each.usd_without_allowances for each in items):.1f}0" in PAGE
    assert PRICES_OF.rpartition(" ")[2] in PAGE
