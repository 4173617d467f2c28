"""Imports the rows of a file into an organization, as docs/importing.md describes.

usage: KEY=wsk_... python3 import.py URL ORGANIZATION FILE
"""
import http.client
import json
import os
import random
import re
import sys
import time
import urllib.request
from collections import namedtuple
from itertools import groupby

Row = namedtuple("Row", "kind project team name line fields")  # sorted in the order of the import


class AsReceived(urllib.request.HTTPErrorProcessor):  # returns redirects, 4xx and 5xx
    http_response = https_response = lambda self, request, response: response


def escape(text):
    """Returns the text in one line, and escapes characters that control a terminal."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in str(text))


def is_id(value):
    """Whether an id can be sent in a path without percent-encoding, which some clients and proxies decode or repeat."""
    return isinstance(value, str) and value not in (".", "..") and re.fullmatch(r"[A-Za-z0-9._~:@-]+", value)


def request(batch):
    """Returns the path and the body of the request that imports rows. Only members are imported together."""
    kind, row = batch[0].kind, batch[0].fields
    if kind == "model":
        return f"org/{ORG}/addModelsToOrg/{row['type']}", {"aIModelsSelectedToAddToOrg": [{"id": row["id"], "modelid": row[kind]}]}
    if kind == "data_store":
        return f"org/{ORG}/dataStores/create", {"dataStoreName": row[kind], "dataStoreDescription": row.get("description")}
    if kind == "voice":
        return f"bot/playground/{row['bot']}/voice", {"type": row[kind], "enabled": row["enabled"]}
    project = f"project/{ORG}/{row['project']}"
    if kind == "team":
        return f"{project}/createNewTeamOnProject", {"teamName": row[kind], "teamDescription": row.get("description")}
    if kind == "logging_instance":
        return f"{project}/createLoggingInstance", {"projectName": row[kind]}
    if team := ids.get(("team", row["project"], row["team"])):
        users = {json.dumps(it.fields[kind]): it.fields[kind] for it in batch}
        return f"{project}/{team}/addUsersToTheTeam", {"usersAddingToTeam": [{"userid": user} for user in users.values()]}
    raise ValueError("its team was not imported, or several rows have this team name")


def send(path, body, row_count):
    """Sends a request, with retries. Returns the state, the id and the details."""
    global next_start
    sent = urllib.request.Request(f"{URL}/api/v1/{path}", json.dumps(body).encode(), HEADERS)
    for attempt in range(12):
        time.sleep(max(0, next_start - time.monotonic()))
        next_start, retry_after = time.monotonic() + row_count / ROWS_PER_SECOND, ""
        try:
            with OPENER.open(sent, timeout=30) as response:
                status, text = response.status, response.read(100_000).decode(errors="replace")
                retry_after = response.headers.get("retry-after", "")
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
        least = min(int(retry_after), 60) if re.fullmatch("[0-9]{1,9}", retry_after) else 0  # a date is ignored
        time.sleep(least + random.uniform(0, min(30, 0.1 * 2**attempt)))
    sys.exit(f"the service does not respond: {escape(failure)}. To continue, run the same command again")


def report(row, state, resource_id="", detail=""):
    """Prints the state of a row."""
    global complete
    complete = complete and state not in ("conflict", "invalid")
    text = escape(f"{state} {row.line} {row.kind} {resource_id or json.dumps(row.name, ensure_ascii=False)} {detail}")
    print(re.sub(r"wsk_\w+", "wsk_...", text), flush=True)  # an API key that is in the file by mistake


def import_rows(batch):
    """Imports rows with one request, which stores all or nothing. Halves an invalid batch until only the invalid rows fail."""
    row = batch[0]
    try:
        if row.kind == "voice" and (earlier := first.setdefault((row.kind, row.fields["bot"]), row.line)) != row.line:
            raise ValueError(f"line {earlier} also sets the voice of this bot")
        state, resource_id, detail = send(*request(batch), len(batch))
        if resource_id and (earlier := first.setdefault((row.kind, row.project, resource_id), row.line)) != row.line:
            raise ValueError(f"line {earlier} has the same id, so both would become one {row.kind}")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        state, resource_id, detail = "invalid", "", f"{type(error).__name__}: {error}"
    if state == "invalid" and len(batch) > 1:
        import_rows(batch[: len(batch) // 2])
        import_rows(batch[len(batch) // 2 :])
        return
    name = row.kind, row.project, row.name
    ids[name] = resource_id if state in ("created", "existing") and name not in ids else None
    for row in batch:
        report(row, state, resource_id, detail)


KINDS = ["team", "data_store", "logging_instance", "model", "voice", "member"]  # in the order of the import
ID_IN_PATH = {"team": "project", "logging_instance": "project", "model": "type", "voice": "bot", "member": "project"}
MAX_USERS = 100  # in a request
ROWS_PER_SECOND = 500  # what a partition of the tables accepts: see docs/scaling.md
URL, ORG, FILE, KEY = [*sys.argv[1:], os.environ.get("KEY", "")] if len(sys.argv) == 4 else [""] * 4
if not all(it and it.isascii() and it.isprintable() and " " not in it for it in (URL, ORG, KEY)) or not is_id(ORG):
    sys.exit(__doc__)
sys.stdout.reconfigure(errors="backslashreplace")
HEADERS = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json", "Prefer": "return=headers-only"}
OPENER, rows, first, ids, complete, next_start = urllib.request.build_opener(AsReceived), [], {}, {}, True, 0
try:
    for line, text in enumerate(open(FILE, "rb"), 1):
        row = json.loads(text.decode("utf-8-sig"))
        kind = next(kind for kind in reversed(KINDS) if kind in row.keys())
        team = repr(row.get("team")) if kind == "member" else ""
        rows.append(Row(kind, str(row.get("project")), team, str(row[kind]), line, row))
except OSError as error:
    sys.exit(f"cannot read the file: {error}")
except (ValueError, AttributeError, StopIteration, RecursionError):
    sys.exit(f"line {line} is not a row: nothing was sent")
rows.sort(key=lambda row: (KINDS.index(row.kind), *row[1:5]))
is_sendable = lambda row: row.kind not in ID_IN_PATH or is_id(row.fields.get(ID_IN_PATH[row.kind]))
for row in rows:  # before anything is sent
    if not is_sendable(row):
        report(row, "invalid", detail=f"{ID_IN_PATH[row.kind]}: an id has only the characters A-Z a-z 0-9 . _ ~ : @ -")
for (kind, *_), group in groupby(filter(is_sendable, rows), key=lambda row: row[:3]):
    group, size = list(group), MAX_USERS if kind == "member" else 1
    for start in range(0, len(group), size):
        import_rows(group[start : start + size])
sys.exit(not complete)
