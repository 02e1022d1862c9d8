"""Print a template as CloudFormation gets it after the SAM transform: `transform.py TEMPLATE NAME=VALUE…`.

Runs in the SAM CLI's own environment. Code is taken to be at s3://artifacts/NAME.zip, or at CODE_NAME=s3://…; nested
templates are taken to be at http://s3.amazonaws.com/artifacts/.
"""

from __future__ import annotations

import json
import sys

from samcli.yamlhelper import yaml_parse
from samtranslator.translator.transform import transform

CODE = {"AWS::Serverless::Function": "CodeUri", "AWS::Serverless::LayerVersion": "ContentUri"}


class NoManagedPolicies:
    """The template writes its roles out, so SAM has none to look up."""

    def load(self) -> dict[str, str]:
        return {}


def main(file: str, *given: str) -> None:
    values = dict(pair.split("=", 1) for pair in given)
    with open(file) as text:  # noqa: PTH123
        template = yaml_parse(text.read())
    for name, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        if place := CODE.get(resource["Type"]):
            properties[place] = values.pop(f"CODE_{name}", f"s3://artifacts/{name}.zip")
        if resource["Type"] == "AWS::Serverless::Application":
            properties["Location"] = f"http://s3.amazonaws.com/artifacts/{properties['Location']}"
    json.dump(transform(template, values, NoManagedPolicies()), sys.stdout, default=str)


if __name__ == "__main__":
    main(*sys.argv[1:])
