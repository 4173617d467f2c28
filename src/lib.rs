//! An HTTP API that stores the configuration of AI workspaces in DynamoDB. Each organization is a
//! workspace, with projects, chat models, data stores and bots. A project has a logging instance
//! and teams. The members of a team are users. A bot has a voice, which has a type and can be
//! disabled.
//!
//! The API runs as one AWS Lambda function, "the function" in comments. `openapi.yaml` is the
//! contract with its clients.
//!
//! # Components
//!
//! | module | responsibility |
//! |---|---|
//! | [`config`] | reads the environment variables |
//! | [`service`] | handles an event within a time limit |
//! | `event`, `prefer` | parse Lambda's event into a request |
//! | [`response`] | turns the outcome of a request (`Success` or `Error`) into Lambda's response |
//! | [`log`] | writes one line per request |
//! | `router` | matches the path, authorizes the caller and runs the operation |
//! | [`operations`] | one module per operation, and the names of operations and path parameters |
//! | [`auth`], [`api_key`] | decide who the caller is and what the caller may do |
//! | `body`, [`values`] | turn a JSON body into a valid input, or into a list of violations |
//! | `load` | sheds requests of the heaviest organization while DynamoDB throttles writes |
//! | [`records`] | the tables, and one struct for each kind of record |
//! | [`store`] | reads and writes records in DynamoDB, with caches and retries |
//! | `error` | lists the errors, each with its status, code and title |
//! | [`text`] | decides which characters are visible and escapes text for output |
//!
//! # The life of a request
//!
//! `POST /api/v1/project/acme/apollo/createNewTeamOnProject` with the body
//! `{"teamName": "Research Team", "teamDescription": "Reads papers"}` takes these steps:
//!
//! 1. API Gateway invokes the function with an event. `Service::handle` parses the event and sets a
//!    time limit for the request.
//! 2. `router` matches the path to `create_team`, with the organization `acme` and the project
//!    `apollo`.
//! 3. `auth` finds the record of the API key in the cache or in DynamoDB, and creates a `Caller` if
//!    all of these hold:
//!    - The secret matches, and the key is neither revoked nor expired.
//!    - The key is for `acme`, and `acme` is enabled.
//!    - The key was issued for the current registration of `acme`.
//!    - The key may call `create_team`.
//!
//!    The check of the registration rejects keys that were issued before an operator erased `acme`
//!    and registered it again.
//! 4. `body` parses the JSON. Invalid JSON gets a 400, and an invalid value gets a 422. While
//!    DynamoDB throttles writes, `load` can reject the request with a 503.
//! 5. `create_team` derives the id `research-team` from the name and writes the team unless the
//!    project has a team with this id. If the existing team has the same name and description, the
//!    request succeeds, because clients may retry requests. If the existing team has a different
//!    description, or a different name that gives the same id (`Research team`), the request gets
//!    a 409.
//! 6. `response` turns the outcome into a 204 without a body, or into a problem document (RFC
//!    9457).
//!
//! # Names
//!
//! The names in the contract, in stored records and in the log are fixed. Where such a name is
//! ambiguous, the code uses a different one:
//!
//! | in the code | elsewhere |
//! |---|---|
//! | `ModelId`, such as `gpt-4o` | `modelid` in the contract, `model_id` in the record |
//! | `ModelNumber` | `id` in the contract and in the record |
//! | `registration_id` | `request_id` of an organization, `org_request_id` of an API key |
//! | `partition_key`, such as `acme#apollo` | `project` of a team, `team` of a member |
//! | `Different…`, `WrongOrganization` | `other_…` in codes and reasons |
//! | `violations` | `errors` in the response and the log |

// `pub` items are used by `main.rs`, by the packages in `tools/` (such as `workspacectl`, the
// operator's tool) or by the tests.
pub mod api_key;
pub mod auth;
mod body;
pub mod config;
mod error;
mod event;
mod load;
pub mod log;
pub mod operations;
mod prefer;
pub mod records;
pub mod response;
mod router;
pub mod service;
pub mod store;
pub mod text;
pub mod values;
