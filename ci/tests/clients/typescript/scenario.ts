// Calls the service with openapi-fetch and the types that openapi-typescript generates.
// Usage: scenario.js URL KEY URL_OF_THROTTLING_PY

import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import createClient from "openapi-fetch";
import type { paths } from "./generated/schema.js";

const [baseUrl, key, throttlingUrl] = process.argv.slice(2);

/** Retries a 429 and a 503. Waits as long as `Retry-After` says. Without this header, the waits grow. */
async function fetchWithRetries(request: Request): Promise<Response> {
  for (let attempt = 0; ; attempt++) {
    const response = await fetch(request.clone());
    if (![429, 503].includes(response.status) || attempt === 8) return response;
    const seconds = Number(response.headers.get("retry-after")) || Math.random() * 2 ** attempt;
    await setTimeout(1000 * Math.min(seconds, 120));
  }
}

const options = { headers: { Authorization: `Bearer ${key}` }, fetch: fetchWithRetries };
const client = createClient<paths>({ baseUrl, ...options });
const anonymous = createClient<paths>({ baseUrl });

const TEAM = "/api/v1/project/{org_id}/{project_id}/createNewTeamOnProject";
const USERS = "/api/v1/project/{org_id}/{project_id}/{team_id}/addUsersToTheTeam";
const [org_id, project_id] = ["acme", "openapi-fetch"];
const inProject = { params: { path: { org_id, project_id } } };
const header = { Prefer: "return=headers-only" };

const models = await anonymous.POST("/api/v1/org/{org_id}/addModelsToOrg/{modelType}", {
  params: { path: { org_id, modelType: project_id } },
  body: { aIModelsSelectedToAddToOrg: [{ id: 1, modelid: "gpt-4o" }] },
});
assert.equal(models.response.status, 204);

const team = await client.POST(TEAM, {
  params: { path: { org_id, project_id }, header },
  body: { teamName: "Fetch Team", teamDescription: "Reads papers" },
});
assert.equal(team.response.status, 204);
const team_id = team.response.headers.get("x-resource-id");
assert.equal(team_id, "fetch-team");
assert.equal(team.response.headers.get("x-resource-state"), "created");

const inTeam = { params: { path: { org_id, project_id, team_id } } };
const users = await client.POST(USERS, { ...inTeam, body: { usersAddingToTeam: [{ userid: "ada" }] } });
assert.equal(users.response.status, 204);

const voice = await client.POST("/api/v1/bot/playground/{id}/voice", {
  params: { path: { id: project_id } },
  body: { type: "alloy", enabled: true },
});
assert.equal(voice.response.status, 204);

const dataStore = await anonymous.POST("/api/v1/org/{org_id}/dataStores/create", {
  params: { path: { org_id }, header },
  body: { dataStoreName: "Fetch Papers" },
});
assert.equal(dataStore.response.headers.get("x-resource-id"), "fetch-papers");

const loggingInstance = await client.POST(
  "/api/v1/project/{org_id}/{project_id}/createLoggingInstance",
  { params: { path: { org_id, project_id }, header }, body: { projectName: "Fetch" } },
);
assert.equal(loggingInstance.response.headers.get("x-resource-state"), "created");

const taken = await client.POST(TEAM, { ...inProject, body: { teamName: "Fetch Team" } });
assert.equal(taken.response.status, 409);
assert(taken.error && "reason" in taken.error);
assert.equal(taken.error.reason, "other_description");
assert.equal(taken.error.resource_id, "fetch-team");

const invalid = await client.POST(USERS, {
  ...inTeam,
  body: { usersAddingToTeam: [{ userid: "ada" }, { userid: " grace" }] },
});
assert.equal(invalid.response.status, 422);
assert(invalid.error && "errors" in invalid.error && invalid.error.errors);
assert.deepEqual(
  invalid.error.errors.map((violation) => [violation.pointer, violation.rule]),
  [["#/usersAddingToTeam/1/userid", "pattern"]],
);

// API Gateway itself rejects it, and so does `cargo serve`.
const teamName = "x".repeat(10 * 1024 * 1024);
const large = await client.POST(TEAM, { ...inProject, body: { teamName } });
assert.equal(large.response.status, 413);
assert(large.error && "message" in large.error);
assert.equal(typeof large.error.message, "string");

const throttled = createClient<paths>({ baseUrl: throttlingUrl, ...options });
const retried = await throttled.POST("/api/v1/bot/playground/{id}/voice", {
  params: { path: { id: project_id } },
  body: { type: "alloy", enabled: true },
});
assert.equal(retried.response.status, 204);

// Compiles, because a later version of the service can send other reasons.
taken.error.reason = "other_planet";
