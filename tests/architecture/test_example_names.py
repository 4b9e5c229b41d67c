"""README.md and the examples call the same things by the same names."""

import json
import re
from typing import Any

import yaml

from fakes.repository import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def jobs_of(text: str) -> dict[str, Any]:
    # YAML 1.1 takes `on` for a boolean; this loader takes everything for text.
    found: dict[str, Any] = yaml.load(text, Loader=yaml.BaseLoader)["jobs"]  # noqa: S506 - of text alone
    return found


EXAMPLE = jobs_of((REPOSITORY / "examples" / "relaunch.yaml").read_text(encoding="utf-8"))
PAGES = [README, *((REPOSITORY / "examples" / name).read_text(encoding="utf-8") for name in ("README.md",))]


def test_the_definition_of_readme_is_the_example_in_short():
    (block,) = re.findall(r"```yaml\n(.*?)```", README, flags=re.DOTALL)

    ((name, definition),) = jobs_of(block).items()

    assert name in EXAMPLE
    assert [trigger for trigger in definition.pop("on") if trigger not in EXAMPLE[name]["on"]] == []
    assert definition.items() <= EXAMPLE[name].items()


def test_the_commands_of_readme_name_jobs_of_the_example():
    named = re.findall(r"^relaunch (?:plan|submit) ([a-z]\w*)", README, flags=re.MULTILINE)

    assert named
    assert set(named) <= set(EXAMPLE)


def test_the_task_definition_of_the_example_is_the_one_its_definition_names():
    document = json.loads((REPOSITORY / "examples" / "task-definition.json").read_text(encoding="utf-8"))
    (definition,) = EXAMPLE.values()

    assert document["family"] == definition["task_definition"]
    assert definition["container"] in {each["name"] for each in document["containerDefinitions"]}


def test_buckets_and_repositories_are_called_alike():
    (definition,) = EXAMPLE.values()
    (bucket,) = {trigger["s3"]["bucket"] for trigger in definition["on"] if "s3" in trigger}
    (repository,) = {trigger["github"]["repository"] for trigger in definition["on"] if "github" in trigger}
    known = {bucket, definition["checkpoint"].removeprefix("s3://").partition("/")[0]}

    for page in PAGES:
        assert set(re.findall(r"s3://([a-z0-9-]+)/", page)) <= known
        assert set(re.findall(r"repository: ([\w-]+/[\w-]+)", page)) <= {repository}
