//! `serve`: what it prints, how it stops, and how it fails to start.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
};

use crate::{assert_fails, assert_usage_error, listed_tables, server::Server, workspacectl};

#[test]
fn the_printed_requests_succeed_and_store_a_record_of_every_kind() {
    let server = Server::start(&[]);

    server.send_events();

    for table in listed_tables() {
        let records = server.records(&["list", table.name]);
        assert!(!records.is_empty(), "{}", table.name);
    }
}

#[test]
fn serve_stops_with_exit_code_0_when_it_is_interrupted_or_terminated() {
    for signal in ["-INT", "-TERM"] {
        let server = Server::start(&[]);
        assert_eq!(server.create_data_store("acme", &server.key, "Papers"), 204);
        server.stop(signal);
    }
}

#[test]
fn serve_stops_while_a_client_holds_a_request_open() {
    let server = Server::start(&[]);
    let mut stream = TcpStream::connect(server.url.strip_prefix("http://").unwrap()).unwrap();
    write!(
        stream,
        "POST /api/v1/org/acme/dataStores/create HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\
         Expect: 100-continue\r\n\r\n"
    )
    .unwrap();
    // The server sends this once it waits for the body.
    let mut response = [0; 12];
    stream.read_exact(&mut response).unwrap();
    assert_eq!(&response, b"HTTP/1.1 100");

    server.stop("-TERM");
}

#[test]
fn serve_keeps_its_data_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data.sqlite");
    let data = ["--data", file.to_str().unwrap()];
    let first = Server::start(&data);
    assert_eq!(first.create_data_store("acme", &first.key, "Papers"), 204);
    let records = first.records(&["list", "data-stores"]);
    assert_eq!(records.len(), 1);
    first.stop("-TERM");

    let second = Server::start(&data);

    assert_eq!(second.records(&["list", "data-stores"]), records);
    assert_eq!(second.create_data_store("acme", &second.key, "Papers"), 204);
    assert_eq!(second.records(&["list", "data-stores"]), records);
}

/// The tables of an older version lack an index, and tables are not changed.
#[test]
fn a_data_file_of_another_version_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data.sqlite");
    let file = file.to_str().unwrap();
    let server = Server::start(&["--data", file]);
    server.recreate_without_index("TeamsTable");
    server.stop("-TERM");

    let arguments = [
        "serve",
        "--port",
        "0",
        "--dynamodb-port",
        "0",
        "--data",
        file,
    ];
    let output = workspacectl(&arguments).output().unwrap();

    assert_fails(&output, "is from another version, whose TeamsTable differs");
}

#[test]
fn serve_explains_why_it_cannot_start() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (missing, text) = (path("no/data.sqlite"), path("text"));
    fs::write(&text, "A text that is long enough for an SQLite header.").unwrap();
    let rows = [
        (
            ["--port", &port],
            format!("127.0.0.1:{port} is in use: choose another port with --port"),
        ),
        (
            ["--dynamodb-port", &port],
            format!("127.0.0.1:{port} is in use: choose another port with --dynamodb-port"),
        ),
        (
            ["--data", &missing],
            format!("cannot open the data file {missing}"),
        ),
        (
            ["--data", &text],
            format!("cannot open the data file {text}"),
        ),
    ];

    for (arguments, message) in rows {
        let ports = ["--port", "--dynamodb-port"].into_iter();
        let free = ports.filter(|option| *option != arguments[0]);
        let free: Vec<_> = free.flat_map(|option| [option, "0"]).collect();
        let output = workspacectl(&["serve"]).args(arguments).args(free).output();
        let output = output.unwrap();
        assert_fails(&output, &message);
        let lines = output.stderr.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(lines, 1, "{output:?}");
    }
}

#[test]
fn serve_rejects_a_stack() {
    let output = workspacectl(&["--stack", "a", "serve"]).output().unwrap();
    assert_usage_error(&output, "remove --stack");
}
