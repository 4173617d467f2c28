//! The last lines of the log, for `workspacectl logs`. On AWS, CloudWatch Logs keeps them.

use std::{
    collections::VecDeque,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use axum::{Router, routing::get};
use tracing_subscriber::{
    Layer, Registry,
    filter::{LevelFilter, Targets},
    fmt,
};
use workspace_management::log::LogFormat;
use workspace_records::local::LOG_PATH;

/// How many lines are kept.
const MAX_LINES: usize = 10_000;

/// The oldest line first. There is one list, because a process has one log.
static LINES: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

tokio::task_local! {
    /// The IP address of the client, while a request is handled. On AWS, the log of the API has it.
    pub(crate) static CLIENT: String;
}

/// Keeps the lines that the service logs about requests.
pub fn layer() -> impl Layer<Registry> {
    let levels = Targets::new().with_target("workspace_management", LevelFilter::INFO);
    let layer = fmt::layer().event_format(LogFormat::default());
    layer.with_writer(|| LineWriter).with_filter(levels)
}

/// The route that sends the lines, as JSON Lines.
pub(crate) fn routes() -> Router {
    Router::new().route(LOG_PATH, get(async || String::from_iter(lines().clone())))
}

fn lines() -> MutexGuard<'static, VecDeque<String>> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the line that is written to it, unless no request is being handled.
struct LineWriter;

impl io::Write for LineWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        if let (Ok(ip), Some(fields)) = (CLIENT.try_with(Clone::clone), text.strip_prefix('{')) {
            let mut lines = lines();
            if lines.len() == MAX_LINES {
                lines.pop_front();
            }
            lines.push_back(format!("{{\"ip\":\"{ip}\",{fields}"));
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_last_lines_of_requests_are_kept() {
        let write = |line: String| LineWriter.write_all(line.as_bytes()).expect("written");
        write("{}\n".to_owned());
        assert!(lines().is_empty());
        for number in 0..=MAX_LINES {
            CLIENT.sync_scope("192.0.2.1".to_owned(), || {
                write(format!("{{\"n\":{number}}}\n"))
            });
        }
        assert_eq!(lines().len(), MAX_LINES);
        let expected = "{\"ip\":\"192.0.2.1\",\"n\":1}\n";
        assert_eq!(lines().front().map(String::as_str), Some(expected));
    }
}
