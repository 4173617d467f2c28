"""Translates a SAM template to CloudFormation, as AWS does in a deployment. Prints JSON. Works offline.

usage: translate.py template.yaml [PARAMETER=VALUE...]
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
parameters = dict(argument.split("=", 1) for argument in sys.argv[2:])
translated = Translator({}, Parser()).translate(template, parameter_values=parameters)
json.dump(translated, sys.stdout, indent=2, default=str)
