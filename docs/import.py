"""Imports the rows of a file into an organization, as docs/importing.md describes.

usage: KEY=wsk_... python3 import.py URL ORGANIZATION FILE
"""
import http.client
import json
import os
import random
import sys
import time
import urllib.request
from urllib.parse import quote


class AsReceived(urllib.request.HTTPErrorProcessor):  # returns redirects, 4xx and 5xx
    http_response = https_response = lambda self, request, response: response


def escape(text):
    """Returns the text in one line, and escapes characters that control a terminal."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in str(text))


def request(kind, row, ids):
    """Returns the path and the body of the request that imports a row."""
    if kind == "model":
        return f"org/{ORG}/addModelsToOrg/{quote(row['type'], '')}", {"aIModelsSelectedToAddToOrg": [{"id": row["id"], "modelid": row[kind]}]}
    if kind == "data_store":
        return f"org/{ORG}/dataStores/create", {"dataStoreName": row[kind], "dataStoreDescription": row.get("description")}
    if kind == "voice":
        return f"bot/playground/{quote(row['bot'], '')}/voice", {"type": row[kind], "enabled": row["enabled"]}
    project = f"project/{ORG}/{quote(row['project'], '')}"
    if kind == "team":
        return f"{project}/createNewTeamOnProject", {"teamName": row[kind], "teamDescription": row.get("description")}
    if kind == "logging_instance":
        return f"{project}/createLoggingInstance", {"projectName": row[kind]}
    if team := ids.get(("team", row["project"], row["team"])):
        return f"{project}/{quote(team, '')}/addUsersToTheTeam", {"usersAddingToTeam": [{"userid": row[kind]}]}
    raise ValueError("its team was not imported, or several rows have this team name")


def send(path, body):
    """Sends a request, with retries. Returns the state, the id and the details."""
    sent = urllib.request.Request(f"{URL}/api/v1/{path}", json.dumps(body).encode(), HEADERS)
    for attempt in range(12):
        try:
            with OPENER.open(sent, timeout=30) as response:
                status, text = response.status, response.read(100_000).decode(errors="replace")
                failure = f"{status} {text[:300]}"
        except (OSError, http.client.HTTPException) as error:
            status, failure = 503, error
        if status == 204:
            return response.headers.get("x-resource-state", "ok"), response.headers.get("x-resource-id", ""), ""
        if status in (401, 403):
            sys.exit(f"the API key is not accepted: {escape(failure)}")
        if status < 500 and status != 429:
            try:
                problem = json.loads(text)
                details = [f"{it['pointer']} {it['detail']}" for it in problem.get("errors", [])]
                return "conflict" if status == 409 else "invalid", "", " ".join([problem["detail"], *details])
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                return ("invalid", "", failure) if status in (413, 414, 431) else sys.exit(f"this is not the service: {escape(failure)}")
        time.sleep(random.uniform(0, min(30, 0.1 * 2**attempt)))
    sys.exit(f"the service does not respond: {escape(failure)}. To continue, run the same command again")


KINDS = ["team", "data_store", "logging_instance", "model", "voice", "member"]  # in the order of the import
URL, ORG, FILE, KEY = [*sys.argv[1:], os.environ.get("KEY", "")] if len(sys.argv) == 4 else [""] * 4
if not all(it and it.isascii() and it.isprintable() and " " not in it for it in (URL, ORG, KEY)):
    sys.exit(__doc__)
sys.stdout.reconfigure(errors="backslashreplace")
HEADERS = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json", "Prefer": "return=headers-only"}
OPENER, rows, first, ids, complete = urllib.request.build_opener(AsReceived), [], {}, {}, True
try:
    for number, line in enumerate(open(FILE, "rb"), 1):
        row = json.loads(line.decode("utf-8-sig"))
        kind = next(kind for kind in reversed(KINDS) if kind in row.keys())
        rows.append((kind, str(row.get("project")), str(row[kind]), number, row))
except OSError as error:
    sys.exit(f"cannot read the file: {error}")
except (ValueError, AttributeError, StopIteration, RecursionError):
    sys.exit(f"line {number} is not a row: nothing was sent")
for kind, project, name, number, row in sorted(rows, key=lambda row: (KINDS.index(row[0]), *row[1:4])):
    try:
        if kind == "voice" and (earlier := first.setdefault((kind, row["bot"]), number)) != number:
            raise ValueError(f"line {earlier} also sets the voice of this bot")
        state, resource_id, detail = send(*request(kind, row, ids))
        if resource_id and (earlier := first.setdefault((kind, project, resource_id), number)) != number:
            raise ValueError(f"line {earlier} has the same id, so both would become one {kind}")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        state, resource_id, detail = "invalid", "", f"{type(error).__name__}: {error}"
    complete = complete and state not in ("conflict", "invalid")
    ids[kind, project, name] = resource_id if state in ("created", "existing") and (kind, project, name) not in ids else None
    print(escape(f"{state} {number} {kind} {resource_id or json.dumps(name, ensure_ascii=False)} {detail}"), flush=True)
sys.exit(not complete)
