"""Calls the service with the client that openapi-python-client generates.

Usage: scenario.py URL KEY URL_OF_THROTTLING_PY
"""

import sys

from httpx_retries import Retry, RetryTransport
from workspace_management_client import AuthenticatedClient
from workspace_management_client.api.bot import set_bot_voice
from workspace_management_client.api.organization import add_models, create_data_store
from workspace_management_client.api.project import add_team_users, create_logging_instance, create_team
from workspace_management_client.models import (
    AddModelsRequest,
    AddTeamUsersRequest,
    ConflictProblem,
    CreateDataStoreRequest,
    CreateLoggingInstanceRequest,
    CreateTeamRequest,
    Model,
    Problem,
    ServerFailure,
    SetBotVoiceRequest,
    TeamUser,
    ValidationProblem,
)

URL, KEY, THROTTLING_URL = sys.argv[1:]
ORG, PROJECT = "acme", "python"
PREFER = "return=headers-only"

# Waits as long as `Retry-After` says. Without this header, the waits grow.
retries = Retry(total=8, allowed_methods=["POST"], backoff_factor=0.5)
options = {"transport": RetryTransport(retry=retries)}

client = AuthenticatedClient(base_url=URL, token=KEY, httpx_args=options)
# The generator types the two operations that accept anonymous callers as if they needed a key.
anonymous = AuthenticatedClient(base_url=URL, token="", prefix="")

models = AddModelsRequest([Model(id=1, modelid="gpt-4o"), Model(id=2, modelid="claude-sonnet")])
for caller in (client, anonymous):
    added = add_models.sync_detailed(ORG, PROJECT, client=caller, body=models)
    assert added.status_code == 204, added

team = CreateTeamRequest("Python Team", team_description="Reads papers")
created = create_team.sync_detailed(ORG, PROJECT, client=client, body=team, prefer=PREFER)
assert created.status_code == 204, created
team_id = created.headers["x-resource-id"]
assert (team_id, created.headers["x-resource-state"]) == ("python-team", "created"), created

users = AddTeamUsersRequest([TeamUser("ada"), TeamUser("grace")])
added_users = add_team_users.sync_detailed(ORG, PROJECT, team_id, client=client, body=users)
assert added_users.status_code == 204, added_users

voice = set_bot_voice.sync_detailed("python", client=client, body=SetBotVoiceRequest("alloy", True))
assert voice.status_code == 204, voice

data_store = CreateDataStoreRequest("Python Papers")
stored = create_data_store.sync_detailed(ORG, client=anonymous, body=data_store, prefer=PREFER)
assert stored.headers["x-resource-id"] == "python-papers", stored

logging_instance = CreateLoggingInstanceRequest("Python")
for state in ("created", "existing"):
    logged = create_logging_instance.sync_detailed(ORG, PROJECT, client=client, body=logging_instance, prefer=PREFER)
    assert logged.headers["x-resource-state"] == state, logged

other_team = CreateTeamRequest("Python Team", team_description="Writes papers")
taken = create_team.sync(ORG, PROJECT, client=client, body=other_team)
assert isinstance(taken, ConflictProblem), taken
assert (taken.reason, taken.resource_id) == ("other_description", "python-team"), taken

rejected = create_team.sync(ORG, PROJECT, client=AuthenticatedClient(base_url=URL, token="wsk_mistyped"), body=team)
assert isinstance(rejected, Problem) and rejected.code == "unauthenticated", rejected

invalid_users = AddTeamUsersRequest([TeamUser("ada"), TeamUser(" grace")])
invalid = add_team_users.sync(ORG, PROJECT, team_id, client=client, body=invalid_users)
assert isinstance(invalid, ValidationProblem), invalid
assert [(error.pointer, error.rule) for error in invalid.errors] == [("#/usersAddingToTeam/1/userid", "pattern")], invalid

# API Gateway itself rejects it, and so does `cargo serve`.
large = create_team.sync(ORG, PROJECT, client=client, body=CreateTeamRequest("x" * 10 * 1024 * 1024))
assert isinstance(large, ServerFailure) and isinstance(large.message, str), large

throttled = AuthenticatedClient(base_url=THROTTLING_URL, token=KEY, httpx_args=options)
retried = set_bot_voice.sync_detailed("python", client=throttled, body=SetBotVoiceRequest("alloy", True))
assert retried.status_code == 204, retried

# A later version of the service can send reasons and members that this client does not know.
later = ConflictProblem.from_dict({**taken.to_dict(), "reason": "other_planet", "planet": "Mars"})
assert later.reason == "other_planet", later
