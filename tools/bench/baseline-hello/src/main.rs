//! A handler that responds to every HTTP event with a 204, without the AWS SDK. It shows the cost
//! of the Lambda runtime itself.

use lambda_http::{Body, Error, Request, Response, run, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    run(service_fn(|_: Request| async {
        Ok::<_, Error>(Response::builder().status(204).body(Body::Empty)?)
    }))
    .await
}
