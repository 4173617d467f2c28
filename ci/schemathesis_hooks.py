"""Leaves out generated requests that openapi.yaml cannot describe."""

import schemathesis


@schemathesis.hook
def filter_case(context, case):
    """A text is only too long before the service removes white space around it and makes CRLF an LF."""
    fields = case.body.values() if isinstance(case.body, dict) else []
    texts = [text for text in fields if isinstance(text, str)]
    return not any(len(text.replace("\r\n", "\n").strip()) <= limit < len(text) for text in texts for limit in (100, 1000))
