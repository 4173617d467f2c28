// Calls the service with the client that @hey-api/openapi-ts generates, and checks values with its
// Zod schemas. Usage: hey-api.js URL KEY

import assert from "node:assert/strict";
import { client } from "./generated/hey-api/client.gen.js";
import {
  addModels,
  addTeamUsers,
  createDataStore,
  createLoggingInstance,
  createTeam,
  setBotVoice,
} from "./generated/hey-api/sdk.gen.js";
import {
  zConflictProblem,
  zCreateTeamRequest,
  zProblem,
  zServerFailure,
  zValidationProblem,
} from "./generated/hey-api/zod.gen.js";

const [baseUrl, key] = process.argv.slice(2);
client.setConfig({ baseUrl, auth: key });

const path = { org_id: "acme", project_id: "hey-api" };
const headers = { Prefer: "return=headers-only" };

for (const name of ["Docs", "Zoo", "123", "日本語"]) {
  assert(zCreateTeamRequest.safeParse({ teamName: name }).success, name);
}
assert(!zCreateTeamRequest.safeParse({ teamName: "!?" }).success);

const models = await addModels({
  path: { org_id: "acme", modelType: "hey-api" },
  body: { aIModelsSelectedToAddToOrg: [{ id: 1, modelid: "gpt-4o" }] },
});
assert.equal(models.response?.status, 204);

const team = await createTeam({
  path,
  headers,
  body: { teamName: "Hey Team", teamDescription: "Reads papers" },
});
assert.equal(team.response?.status, 204);
const team_id = team.response.headers.get("x-resource-id") ?? "";
assert.equal(team_id, "hey-team");

const inTeam = { ...path, team_id };
const users = await addTeamUsers({ path: inTeam, body: { usersAddingToTeam: [{ userid: "ada" }] } });
assert.equal(users.response?.status, 204);

const voice = await setBotVoice({ path: { id: "hey-api" }, body: { type: "alloy", enabled: true } });
assert.equal(voice.response?.status, 204);

const dataStore = await createDataStore({
  path: { org_id: "acme" },
  headers,
  body: { dataStoreName: "Hey Papers" },
});
assert.equal(dataStore.response?.headers.get("x-resource-id"), "hey-papers");

const loggingInstance = await createLoggingInstance({ path, body: { projectName: "Hey" } });
assert.equal(loggingInstance.response?.status, 204);

const taken = await createTeam({ path, body: { teamName: "Hey Team" } });
assert.equal(taken.response?.status, 409);
assert.equal(zConflictProblem.parse(taken.error).reason, "other_description");
assert(taken.error && "reason" in taken.error);
assert.equal(taken.error.resource_id, "hey-team");

const rejected = await createTeam({ path, body: { teamName: "A" }, auth: "wsk_mistyped" });
assert.equal(rejected.response?.status, 401);
assert.equal(zProblem.parse(rejected.error).code, "unauthenticated");

const invalid = await addTeamUsers({
  path: inTeam,
  body: { usersAddingToTeam: [{ userid: "ada" }, { userid: " grace" }] },
});
assert.equal(invalid.response?.status, 422);
assert.deepEqual(
  zValidationProblem.parse(invalid.error).errors.map((violation) => [violation.pointer, violation.rule]),
  [["#/usersAddingToTeam/1/userid", "pattern"]],
);

const unavailable = await createTeam({
  path: { ...path, project_id: "gateway-503" },
  body: { teamName: "A" },
});
assert.equal(unavailable.response?.status, 503);
assert.equal(zServerFailure.parse(unavailable.error).message, "Service Unavailable");

const newReason = await createTeam({
  path: { ...path, project_id: "new-reason" },
  body: { teamName: "A" },
});
assert.equal(zConflictProblem.parse(newReason.error).reason, "other_planet");
