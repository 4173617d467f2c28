"""Translates a SAM template to CloudFormation, as AWS does in a deployment. Prints JSON. Works offline.

usage: translate.py template.yaml [--without-permissions]
moto cannot create the permissions to invoke the function, because it has no aliases.
"""

import json
import sys

from samcli.yamlhelper import yaml_parse
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

with open(sys.argv[1], encoding="utf-8") as file:
    template = yaml_parse(file.read())
# A placeholder, if `sam package` has not uploaded the code.
for resource in template["Resources"].values():
    if resource.get("Properties", {}).get("CodeUri") == ".":
        resource["Properties"]["CodeUri"] = "s3://bucket/key"
translated = Translator({}, Parser()).translate(template, parameter_values={})
if "--without-permissions" in sys.argv:
    resources = translated["Resources"].items()
    translated["Resources"] = {name: it for name, it in resources if it["Type"] != "AWS::Lambda::Permission"}
json.dump(translated, sys.stdout, indent=2, default=str)
