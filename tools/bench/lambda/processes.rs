//! Runs a function as Lambda does: in as many processes as it has requests at the same time.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::Result;

use crate::function::{Function, Response};

/// The maximum number of processes. By default, Lambda's is 1,000, which is too much for most
/// machines.
const MAX_PROCESSES: usize = 100;

/// The processes of a function.
pub(crate) struct Processes {
    program: PathBuf,
    dynamodb_url: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The processes without a request. The last one was used last.
    idle: Vec<Function>,
    started: usize,
}

impl Processes {
    pub(crate) fn new(program: PathBuf, dynamodb_url: String) -> Self {
        Self {
            program,
            dynamodb_url,
            state: Mutex::default(),
        }
    }

    /// How many processes were started. None is stopped.
    pub(crate) fn started(&self) -> usize {
        self.state().started
    }

    /// Sends an event to the idle process that was used last, or starts a process. `None` if all
    /// processes are busy and no more may be started.
    pub(crate) async fn respond(&self, event: &Arc<str>) -> Result<Option<Response>> {
        let idle = {
            let mut state = self.state();
            let idle = state.idle.pop();
            if idle.is_none() {
                if state.started == MAX_PROCESSES {
                    return Ok(None);
                }
                state.started += 1;
            }
            idle
        };
        let mut process = match idle {
            Some(process) => process,
            None => {
                let variables = [("AWS_ENDPOINT_URL_DYNAMODB", &*self.dynamodb_url)];
                Function::start(&self.program, &variables, None).await?.0
            }
        };
        let response = process.respond(event).await?;
        self.state().idle.push(process);
        Ok(Some(response))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
