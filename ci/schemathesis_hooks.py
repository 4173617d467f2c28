"""Leaves out generated requests that openapi.yaml cannot describe."""

import schemathesis


@schemathesis.hook
def filter_case(context, case):
    """The service removes white space around a text before it checks the length. JSON Schema cannot."""
    fields = case.body.values() if isinstance(case.body, dict) else []
    return all(len(text.strip()) == len(text) for text in fields if isinstance(text, str) and len(text) > 100)
