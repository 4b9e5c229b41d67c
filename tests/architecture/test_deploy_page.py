"""What docs/deploy.md shows is what the command, the templates and the parser take."""

import re

from fakes.repository import REPOSITORY
from relaunch_cli.deployment.idle_cost import PRICES_OF, idle_costs, total
from relaunch_cli.deployment.named_parameters import read_named
from relaunch_cli.deployment.source import find_source

PAGE = (REPOSITORY / "docs" / "deploy.md").read_text(encoding="utf-8")


def test_every_parameter_of_the_table_is_known() -> None:
    table = PAGE.partition("## Parameters")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
    names = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]

    assert len(names) > 12
    assert set(read_named([f"{name}=a" for name in names], find_source())) == set(names)


def test_the_cost_is_the_one_that_the_command_shows() -> None:
    items = idle_costs(has_machines=True, has_monitoring=True, has_webhook=False, has_uploads=False)

    assert f"About {total(items):.2f} USD a month" in PAGE
    assert f"it is {sum(each.usd_without_allowances for each in items):.2f}" in PAGE
    assert PRICES_OF.rpartition(" ")[2] in PAGE
