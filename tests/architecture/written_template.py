"""A template as it is written, without the transform of SAM: with the long forms of CloudFormation's functions."""

from architecture.conftest import Template
from relaunch_local.templates.document import read_yaml


def written_template(file: str) -> Template:
    """Return the template in a file of the repository."""
    document = read_yaml(file)
    rules = {name: rule["Assertions"] for name, rule in document.get("Rules", {}).items()}
    parts = (document.get(each, {}) for each in ("Parameters", "Conditions", "Resources"))
    return Template(*parts, rules, document.get("Outputs", {}))
