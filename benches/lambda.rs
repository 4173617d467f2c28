//! Lambda's side of a program: it starts it, hands it events, takes its answers, and looks at what it cost.

use std::{
    fs,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result, bail};
use axum::{
    Router,
    body::Bytes,
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, StatusCode},
    routing::{get, post},
};
use tokio::{
    net::TcpListener,
    process::{Child, Command},
    sync::{Mutex, mpsc},
    time::timeout,
};

/// A program under Lambda.
pub(crate) struct Lambda {
    process: Child,
    events: mpsc::UnboundedSender<(u64, Arc<str>)>,
    asked: mpsc::UnboundedReceiver<Instant>,
    answers: mpsc::UnboundedReceiver<Answer>,
}

struct Answer {
    id: u64,
    at: Instant,
    body: Bytes,
}

struct RuntimeApi {
    events: Mutex<mpsc::UnboundedReceiver<(u64, Arc<str>)>>,
    asked: mpsc::UnboundedSender<Instant>,
    answers: mpsc::UnboundedSender<Answer>,
}

async fn next(State(api): State<Arc<RuntimeApi>>) -> (HeaderMap, String) {
    // Whoever does not listen any more does not miss it.
    let _ = api.asked.send(Instant::now());
    let Some((id, event)) = api.events.lock().await.recv().await else {
        return std::future::pending().await;
    };
    let deadline = SystemTime::now() + Duration::from_secs(10);
    let deadline = deadline
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis();
    let mut headers = HeaderMap::new();
    headers.insert("lambda-runtime-aws-request-id", HeaderValue::from(id));
    headers.insert(
        "lambda-runtime-deadline-ms",
        HeaderValue::from(deadline as u64),
    );
    let arn = "arn:aws:lambda:us-east-1:123456789012:function:benchmark";
    headers.insert(
        "lambda-runtime-invoked-function-arn",
        HeaderValue::from_static(arn),
    );
    (headers, event.to_string())
}

async fn answer(
    State(api): State<Arc<RuntimeApi>>,
    Path((id, _)): Path<(u64, String)>,
    body: Bytes,
) -> StatusCode {
    let _ = api.answers.send(Answer {
        id,
        at: Instant::now(),
        body,
    });
    StatusCode::ACCEPTED
}

impl Lambda {
    /// Starts a program and waits until it is ready: until it asks for its first event.
    pub(crate) async fn start(
        program: &str,
        variables: &[(String, String)],
    ) -> Result<(Self, Duration)> {
        let (events, waiting) = mpsc::unbounded_channel();
        let (send_asked, mut asked) = mpsc::unbounded_channel();
        let (send_answers, answers) = mpsc::unbounded_channel();
        let api = RuntimeApi {
            events: Mutex::new(waiting),
            asked: send_asked,
            answers: send_answers,
        };
        let routes = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/{kind}", post(answer))
            .with_state(Arc::new(api));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        tokio::spawn(axum::serve(listener, routes).into_future());
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("AWS_LAMBDA_FUNCTION_NAME", "benchmark")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .env("AWS_LAMBDA_LOG_FORMAT", "JSON")
            .env("AWS_LAMBDA_RUNTIME_API", address)
            .env("METRICS_NAMESPACE", "benchmark")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "local")
            .env("AWS_SECRET_ACCESS_KEY", "local")
            .env("AWS_SESSION_TOKEN", "local")
            .envs(variables.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .kill_on_drop(true);
        let started = Instant::now();
        let process = command
            .spawn()
            .with_context(|| format!("{program} cannot be started"))?;
        let ready = timeout(Duration::from_secs(20), asked.recv()).await;
        let ready = ready
            .context("the program does not ask for events")?
            .context("closed")?;
        let lambda = Self {
            process,
            events,
            asked,
            answers,
        };
        Ok((lambda, ready - started))
    }

    /// Hands the program an event and waits for its answer, which must be a 204; how long it took.
    pub(crate) async fn invoke(&mut self, event: &Arc<str>) -> Result<Duration> {
        // The program is back for the next event before the clock starts.
        while self.asked.try_recv().is_ok() {}
        let handed = Instant::now();
        self.send(0, event)?;
        let (_, answered) = self.answered().await?;
        timeout(Duration::from_secs(20), self.asked.recv())
            .await?
            .context("closed")?;
        Ok(answered - handed)
    }

    pub(crate) fn send(&self, id: u64, event: &Arc<str>) -> Result<()> {
        Ok(self.events.send((id, event.clone()))?)
    }

    /// To which event the next answer came, which must be a 204, and when.
    pub(crate) async fn answered(&mut self) -> Result<(u64, Instant)> {
        let answer = timeout(Duration::from_secs(20), self.answers.recv()).await;
        let answer = answer
            .context("the program does not answer")?
            .context("closed")?;
        if !answer.body.starts_with(b"{\"statusCode\":204") {
            bail!("answered {}", String::from_utf8_lossy(&answer.body));
        }
        Ok((answer.id, answer.at))
    }

    /// The CPU time that the program has taken, of all its threads.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let mut nanoseconds = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.id()?))? {
            let statistics = fs::read_to_string(task?.path().join("schedstat"))?;
            let first = statistics.split(' ').next().context("schedstat is empty")?;
            nanoseconds += first.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanoseconds))
    }

    /// The most memory that the program has held, in KiB.
    pub(crate) fn peak_memory(&self) -> Result<u64> {
        self.status("VmHWM:")
    }

    /// The memory that the program holds, in KiB.
    pub(crate) fn memory(&self) -> Result<u64> {
        self.status("VmRSS:")
    }

    fn status(&self, name: &str) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id()?))?;
        let value = status.lines().find_map(|line| line.strip_prefix(name));
        let value = value.context("no such line")?.trim();
        Ok(value.trim_end_matches(" kB").parse()?)
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        Ok(self.process.kill().await?)
    }

    fn id(&self) -> Result<u32> {
        self.process.id().context("the program has ended")
    }
}
