"""Translates a SAM template to CloudFormation, as AWS does in a deployment. Prints JSON. Works offline.

usage: translate.py template.yaml
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
    if resource["Type"] == "AWS::Serverless::Function" and not resource["Properties"]["CodeUri"].startswith("s3://"):
        resource["Properties"]["CodeUri"] = "s3://bucket/key"
translated = Translator({}, Parser()).translate(template, parameter_values={})
json.dump(translated, sys.stdout, indent=2, default=str)
