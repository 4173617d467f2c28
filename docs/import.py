"""Imports rows into an organization, as docs/importing.md describes.

usage: KEY=wsk_... python3 import.py URL ORGANIZATION FILE
"""
import http.client
import json
import os
import random
import sys
import time
import urllib.request
from urllib.error import HTTPError
from urllib.parse import quote

URL, ORG, FILE = sys.argv[1:]
HEADERS = {"Authorization": f"Bearer {os.environ['KEY']}", "Content-Type": "application/json", "Prefer": "return=headers-only"}
KINDS = ["team", "data_store", "logging_instance", "model", "voice", "member"]  # in the order of their requests


def request(kind, row, team_ids):
    """The path and the body of a row's request."""
    if kind == "model":
        models = [{"id": row["id"], "modelid": row["model"]}]
        return f"org/{ORG}/addModelsToOrg/{quote(row['type'], '')}", {"aIModelsSelectedToAddToOrg": models}
    if kind == "data_store":
        return f"org/{ORG}/dataStores/create", {"dataStoreName": row[kind], "dataStoreDescription": row.get("description")}
    if kind == "voice":
        return f"bot/playground/{quote(row['bot'], '')}/voice", {"type": row[kind], "enabled": row["enabled"]}
    project = f"project/{ORG}/{quote(row['project'], '')}"
    if kind == "team":
        return f"{project}/createNewTeamOnProject", {"teamName": row[kind], "teamDescription": row.get("description")}
    if kind == "logging_instance":
        return f"{project}/createLoggingInstance", {"projectName": row[kind]}
    if team := team_ids.get((row["project"], row["team"])):
        return f"{project}/{team}/addUsersToTheTeam", {"usersAddingToTeam": [{"userid": row[kind]}]}
    raise ValueError("its team was not imported")


def send(path, body):
    """Repeats a request until it gets a response that repeating cannot change: its state, id and details."""
    for attempt in range(12):
        sent = urllib.request.Request(f"{URL}/api/v1/{path}", json.dumps(body).encode(), HEADERS)
        try:
            with urllib.request.urlopen(sent, timeout=30) as response:
                return response.headers.get("x-resource-state", "ok"), response.headers.get("x-resource-id", ""), ""
        except HTTPError as error:
            failure = f"{error.code} {error.read().decode()}"
            if error.code in (401, 403):
                sys.exit(f"the key is not accepted: {failure}")
            if error.code < 500 and error.code != 429:
                problem = json.loads(failure[4:])
                details = [problem["detail"], *(f"{it['pointer']} {it['detail']}" for it in problem.get("errors", []))]
                return "conflict" if error.code == 409 else "invalid", "", " ".join(details)
        except (OSError, http.client.HTTPException) as error:
            failure = error
        time.sleep(random.uniform(0, min(30, 0.1 * 2**attempt)))
    sys.exit(f"the service does not respond: {failure}. Run the same command again to continue")

rows, first, team_ids, complete = [], {}, {}, True
for number, line in enumerate(open(FILE, encoding="utf-8"), 1):
    try:
        row = json.loads(line)
        kind = next(kind for kind in reversed(KINDS) if kind in row)
        rows.append((KINDS.index(kind), str(row.get("project")), str(row[kind]), number, row))
    except (ValueError, TypeError, StopIteration):
        sys.exit(f"line {number} is not a row: nothing was sent")
for rank, project, name, number, row in sorted(rows, key=lambda row: row[:4]):
    kind, resource_id = KINDS[rank], ""
    earlier = first.setdefault((rank, project, name.strip()), number)
    try:
        if kind in ("team", "data_store") and earlier != number:
            raise ValueError(f"line {earlier} has the same name, so both would become one {kind}")
        state, resource_id, detail = send(*request(kind, row, team_ids))
    except (KeyError, TypeError, ValueError) as error:
        state, detail = "invalid", f"{type(error).__name__}: {error}"
    if kind == "team" and resource_id:
        team_ids[project, name] = resource_id
    complete = complete and state not in ("conflict", "invalid")
    print(state, number, kind, resource_id or json.dumps(name, ensure_ascii=False), detail, flush=True)
sys.exit(not complete)
