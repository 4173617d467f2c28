//! The least that answers an HTTP event: a hello without any SDK.

use lambda_http::{Body, Error, Request, Response, run, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    run(service_fn(|_: Request| async {
        Ok::<_, Error>(Response::builder().status(204).body(Body::Empty)?)
    }))
    .await
}
