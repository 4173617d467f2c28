"""Tests that a stack of the CDK that includes the template deploys the same resources.

usage: TRANSLATED_TEMPLATE=FILE.json INCLUDED_TEMPLATE=FILE.json pytest ci/tests/test_include.py
The files are the outputs of ci/translate.py for the template and for the output of ci/include.cjs.
"""

import json
import os
import re
from pathlib import Path


def resources(variable):
    """The resources, with the CDK's way of writing what can be written in two ways."""
    text = Path(os.environ[variable]).read_text(encoding="utf-8")
    # SAM derives it from the text of the function.
    text = re.sub(r"FunctionVersion[0-9a-f]{10}", "FunctionVersion", text)
    text = re.sub(r'"Fn::GetAtt": \[\s*"(\w+)",\s*"([\w.]+)"\s*\]', r'"Fn::GetAtt": "\1.\2"', text)
    text = re.sub(r'"DependsOn": ("\w+")', r'"DependsOn": [\1]', text)
    return json.loads(text)["Resources"]


def test_the_cdk_deploys_the_same_resources():
    expected = resources("TRANSLATED_TEMPLATE")
    included = resources("INCLUDED_TEMPLATE")
    assert included.keys() == expected.keys()
    assert [name for name in expected if included[name] != expected[name]] == []
