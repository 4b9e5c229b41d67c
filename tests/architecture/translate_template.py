"""Prints the template as CloudFormation gets it: run by the interpreter beside SAM CLI, which has SAM's translator.

`sam package` would fill in where code lies in S3; here any place will do.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

ANY_PLACE = "s3://packages/code"


class NoManagedPolicies:
    """The template names none."""

    def load(self) -> dict[str, str]:
        return {}


def translate(template: dict[str, Any]) -> dict[str, Any]:
    template["Globals"]["Function"]["CodeUri"] = ANY_PLACE
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::LayerVersion":
            resource["Properties"]["ContentUri"] = ANY_PLACE
    return transform(template, {}, NoManagedPolicies())


if __name__ == "__main__":
    os.environ.setdefault("AWS_DEFAULT_REGION", "eu-central-1")
    sys.stdout.write(json.dumps(translate(yaml_parse(Path(sys.argv[1]).read_text()))))
