//! Which deployment a command works on, what `env` prints of it, and what an operator reads if
//! there is none.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    thread,
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned, crypto::ring, pki_types::PrivatePkcs8KeyDer,
};
use serde_json::Value;
use tempfile::TempDir;
use workspace_records::kinds::ALL_TABLES;

use crate::{
    AWS, ROOTS, assert_exits_with, network::Network, on_stack, server::Server, text, unused_url,
    workspacectl,
};

/// The URL of DynamoDB.
const DYNAMODB: &str = "AWS_ENDPOINT_URL_DYNAMODB";

const REGION: (&str, &str) = AWS[0];

/// The variables that name the tables of a stack.
fn tables() -> Vec<(&'static str, &'static str)> {
    ALL_TABLES
        .map(|table| (table.env_variable, table.logical_id))
        .into()
}

#[test]
fn a_deployment_that_cannot_be_used_is_named_with_a_hint() {
    let server = Server::start();
    let (url, home) = (unused_url(), tempfile::tempdir().unwrap());
    let check = |code, variables: &[(&str, &str)], error: &str| {
        let mut command = workspacectl("orgs list");
        command.env("HOME", home.path()).envs(variables.to_vec());
        command.env("AWS_EC2_METADATA_DISABLED", "true");
        let output = command.output().unwrap();
        assert_exits_with(code, &output, error);
        // The causes would show the request.
        assert!(!text(&output.stderr).contains("SdkBody"), "{output:?}");
    };
    let unused = (DYNAMODB, &*url);
    let unreachable = format!("{url}: cannot read OrganizationsTable");
    check(1, &[unused], &unreachable);
    check(1, &[unused], "hint: Run `cargo serve` first");
    let named_tables = [&tables()[..], &AWS, &[unused]].concat();
    check(1, &named_tables, "hint: Cannot connect. Check the network");
    let one_table = [("KEYS_TABLE", "some-table"), REGION];
    check(1, &one_table, "ORGANIZATIONS_TABLE is not set");
    check(1, &tables(), "set AWS_REGION");
    let no_credentials = [tables(), vec![REGION]].concat();
    check(1, &no_credentials, "No valid AWS credentials were found");
    let local = (DYNAMODB, &*server.dynamodb_url);
    let no_table = [("ORGANIZATIONS_TABLE", "NoTable"), local];
    let no_table = [&tables()[..], &AWS, &no_table].concat();
    check(1, &no_table, "cannot read NoTable");
    check(1, &no_table, "A table does not exist. Check --stack");
    let error = "AWS_ENDPOINT_URL_DYNAMODB must be an http or https URL, not \"nonsense\"";
    check(2, &[(DYNAMODB, "nonsense")], error);
    for variable in [DYNAMODB, "AWS_ENDPOINT_URL"] {
        let other_service = [(variable, &*server.url)];
        check(1, &other_service, "the response did not come from");
        check(1, &other_service, "hint: Check the endpoint");
    }
}

/// Even on a system without root certificates, such as a small container.
#[test]
fn requests_to_aws_use_the_proxy_of_the_environment() {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", proxy.local_addr().unwrap());
    let mut command = workspacectl("orgs list");
    command.envs(tables()).envs(AWS).stderr(Stdio::null());
    command
        .env("HTTPS_PROXY", url)
        .env("SSL_CERT_FILE", "/dev/null");
    let mut process = command.spawn().unwrap();
    let (connection, _) = proxy.accept().unwrap();
    let line = BufReader::new(connection).lines().next();
    process.kill().unwrap();
    process.wait().unwrap();
    let connect = "CONNECT dynamodb.us-east-1.amazonaws.com:443 HTTP/1.1";
    assert_eq!(line.unwrap().unwrap(), connect);
}

#[test]
fn verbose_shows_the_causes_of_an_error() {
    let url = unused_url();
    for (line, is_verbose) in [("orgs list", false), ("orgs list --verbose", true)] {
        let output = workspacectl(line).env(DYNAMODB, &url).output().unwrap();
        let error = text(&output.stderr);
        assert_eq!(error.contains("dispatch failure"), is_verbose, "{error}");
    }
}

#[test]
fn env_prints_the_variables_for_the_tables_and_names_the_settings_that_it_cannot_know() {
    let server = Server::start();

    let output = server.output("env");

    let notes = text(&output.stderr);
    let expected = "ANONYMOUS_OPERATIONS (default: denied) and KEY_CACHE_SECONDS";
    assert!(notes.contains(expected), "{notes}");
    let local = [
        (DYNAMODB, &*server.dynamodb_url),
        ("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", &server.dynamodb_url),
        ("AWS_REGION", "us-east-1"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "local"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
    ];
    let line = |(name, value): (&str, &str)| format!("{name}={value}");
    let expected: Vec<_> = tables().into_iter().chain(local).map(line).collect();
    let lines: Vec<_> = text(&output.stdout).lines().collect();
    assert_eq!(lines, expected);
    // Only the local service has an endpoint and credentials to print.
    let mut command = workspacectl("env --json");
    let output = command.envs(tables()).envs([REGION]).output().unwrap();
    let variables: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(variables.as_object().unwrap().len(), tables().len());
}

/// Writes the configuration file of AWS in a new home folder.
fn home_with_config(config: &str) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".aws")).unwrap();
    fs::write(home.path().join(".aws/config"), config).unwrap();
    home
}

#[test]
fn a_variable_that_is_empty_counts_as_not_set() {
    let network = Network::new();
    let url = network.listen(|_| None);
    let mut command = on_stack(&url, "orgs list");
    for name in [
        "AWS_CA_BUNDLE",
        "AWS_CONFIG_FILE",
        "AWS_ENDPOINT_URL_CLOUDFORMATION",
        "AWS_ENDPOINT_URL_DYNAMODB",
        "AWS_MAX_ATTEMPTS",
        "AWS_PROFILE",
        "AWS_REGION",
        "AWS_SESSION_TOKEN",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_USE_FIPS_ENDPOINT",
        "ORGANIZATIONS_TABLE",
        "WORKSPACECTL_STACK",
        "WORKSPACECTL_WAIT",
    ] {
        command.env(name, "");
    }
    command.env("AWS_DEFAULT_REGION", "eu-north-1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stderr), "");

    let no_region = on_stack(&url, "orgs list").env("AWS_REGION", "").output();
    assert_exits_with(1, &no_region.unwrap(), "set AWS_REGION");

    let server = Server::start();
    let mut disable = server.command("orgs disable acme --no-wait");
    let output = disable.env("WORKSPACECTL_WAIT", "").output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_configuration_of_aws_that_cannot_be_used_is_named() {
    #[rustfmt::skip] // keeps a table short
    let cases: [(&[u8], &str, &str); 16] = [
        (b"", "AWS_RETRY_MODE=legacy AWS_MAX_ATTEMPTS=0", "No valid AWS credentials were found"),
        (b"[default]\nretry_mode = x\nmax_attempts =", "", "No valid AWS credentials were found"),
        (b"[default]\nca_bundle =", "", "No valid AWS credentials were found"),
        (b"[default]\nrole_arn = arn\nweb_identity_token_file = /no", "", "that AWS_WEB_IDENTITY_TOKEN_FILE or"),
        (b"[default]\nservices = x\n[services y]\nsts =", "", "has no section [services x]"),
        (b"[default]\nservices = x\n[services x]\n[services y]", "", "has no section [services x]"),
        (b"[default]\nservices =\n[services y]\nsts =", "", "has no section [services ]"),
        (b"", "AWS_CONFIG_FILE=~/.aws/config/x", ".aws/config/x: Not a directory"),
        (b"[default]", "AWS_PROFILE=default AWS_DEFAULT_PROFILE=nosuch", "no AWS profile nosuch: check AWS_DEFAULT_PROFILE"),
        (b"[default]", "AWS_PROFILE=nosuch", "there is no AWS profile nosuch"),
        (b"[default]", "AWS_DEFAULT_PROFILE=nosuch", "there is no AWS profile nosuch"),
        (b"[profile x", "", ".aws/config on line 1: Profile definition must end with ']'"),
        (b"\xff\xfe[\0", "", ".aws/config: stream did not contain valid UTF-8"),
        (b"[default]\ncredential_process = echo 'sign in first' >&2 && false", "", "Stderr: sign in first\n"),
        (b"[default]\nrole_arn = arn\nsource_profile = nosuch", "", "profile `nosuch` was not defined"),
        (b"[default]\nca_bundle = /no/such.pem", "", "cannot use the file /no/such.pem"),
    ];
    for (config, variables, error) in cases {
        let home = home_with_config("");
        fs::write(home.path().join(".aws/config"), config).unwrap();
        let mut command = workspacectl("--stack stack orgs list");
        command.env("HOME", home.path()).envs([REGION]);
        command.env("AWS_EC2_METADATA_DISABLED", "true");
        let variables = variables.split(' ');
        command.envs(variables.filter_map(|variable| variable.split_once('=')));
        assert_exits_with(1, &command.output().unwrap(), error);
    }
}

#[test]
fn messages_name_the_deployment_that_requests_go_to() {
    let (server, network) = (Server::start(), Network::new());
    let (dynamodb, aws) = (&server.dynamodb_url, network.listen(|_| None));
    let global = format!("[default]\nendpoint_url = {aws}");
    let service =
        format!("[default]\nservices = x\n[services x]\ndynamodb =\n endpoint_url = {dynamodb}");
    let run = |config: &str, stack: &str, variables: &[(&str, &str)]| {
        let home = home_with_config(config);
        let mut command = workspacectl(&format!("{stack} orgs create globex --if-absent"));
        command.env("HOME", home.path()).envs(AWS);
        command.envs(variables.to_vec()).env("SSL_CERT_FILE", ROOTS);
        let output = command.output().unwrap();
        (output.status.code(), text(&output.stderr).to_owned())
    };
    let ignore = ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true");
    let local = (DYNAMODB, &**dynamodb);
    // No request to AWS can be sent to this region.
    let ignored = [&tables()[..], &[local, ignore, ("AWS_REGION", "no region")]].concat();
    #[rustfmt::skip] // keeps a table short
    let cases = [
        (run(&global, "--stack stack", &[]), 0, "stack stack: the organization".to_owned()),
        (run(&service, "", &tables()), 0, format!("OrganizationsTable in {dynamodb}: ")),
        (run("", "", &ignored), 1, "OrganizationsTable in no region: ".to_owned()),
        (run(&service, "--stack stack", &[]), 2, format!("its tables from {dynamodb} and your identity from AWS: set all")),
        (run(&global, "--stack stack", &[local]), 2, format!("read from {aws}, its tables from {dynamodb}")),
        (run(&global, "--stack stack", &[("AWS_ENDPOINT_URL_STS", dynamodb)]), 2, format!("your identity from {dynamodb}")),
        (run("", "", &[local, ignore]), 2, format!("{} excludes {DYNAMODB}", ignore.0)),
        (run("[default]\nendpoint_url = nonsense", "--stack stack", &[]), 2, "must be an http or https URL".to_owned()),
    ];
    for ((code, message), expected_code, expected) in cases {
        assert_eq!(code, Some(expected_code), "{message}");
        assert!(message.contains(&expected), "{message}");
    }
}

#[test]
fn libraries_log_in_color_only_if_it_is_wanted() {
    let network = Network::new();
    let mut command = on_stack(&network.listen(|_| None), "--verbose orgs list");
    // The SDK warns about a value that is not a boolean.
    command.env("AWS_USE_FIPS_ENDPOINT", "perhaps");
    let is_colored = |command: &mut Command| command.output().unwrap().stderr.contains(&0x1b);
    assert!(!is_colored(&mut command));
    assert!(is_colored(command.env("CLICOLOR_FORCE", "1")));
    assert!(!is_colored(command.env("NO_COLOR", "1")));
}

/// Starts a server of HTTPS that returns an empty list. Its root certificate is in the file.
fn start_https_server(ca_file: &Path) -> String {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    fs::write(ca_file, ca.self_signed(&ca_key).unwrap().pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = certificate.signed_by(&key, &Issuer::new(ca, ca_key));
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.unwrap().into()], key.into());
    let config = Arc::new(config.unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!(
        "https://localhost:{}",
        listener.local_addr().unwrap().port()
    );
    thread::spawn(move || {
        for connection in listener.incoming() {
            let tls = ServerConnection::new(config.clone()).unwrap();
            let mut stream = StreamOwned::new(tls, connection.unwrap());
            // Fails if the client does not trust the certificate.
            if stream.read(&mut [0; 4096]).is_ok() {
                let body = r#"{"Items":[],"Count":0,"ScannedCount":0}"#;
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
                let _ = stream.write_all((head + body).as_bytes());
            }
        }
    });
    url
}

#[test]
fn a_ca_bundle_in_the_environment_or_the_profile_replaces_the_roots_of_the_system() {
    let folder = tempfile::tempdir().unwrap();
    let ca_file = folder.path().join("ca.pem");
    let url = start_https_server(&ca_file);
    let ca_file = ca_file.to_str().unwrap();
    let profile = format!("[default]\nca_bundle = {ca_file}");
    for (config, bundle) in [("", ca_file), (&profile, "")] {
        let home = home_with_config(config);
        let mut command = workspacectl("orgs list");
        command.envs(tables()).envs(AWS).env(DYNAMODB, &url);
        command
            .env("HOME", home.path())
            .env("AWS_CA_BUNDLE", bundle);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let with_bundle = |bundle| {
        let mut command = workspacectl("orgs list");
        let command = command.env(DYNAMODB, &url).env("AWS_CA_BUNDLE", bundle);
        command.output().unwrap()
    };
    assert!(with_bundle(ca_file).status.success());
    assert_exits_with(1, &with_bundle(ROOTS), "UnknownIssuer");
    assert_exits_with(1, &with_bundle(ROOTS), "hint: Check the certificate");
}

/// Cron jobs and containers have no `USER`.
#[test]
fn without_a_variable_the_operator_has_the_name_of_the_user_id() {
    let server = Server::start();
    let id = Command::new("id").arg("-un").output().unwrap();
    let mut create = workspacectl("orgs create globex --json");
    create.env("AWS_ENDPOINT_URL_DYNAMODB", &server.dynamodb_url);
    let output = create.env("USER", "").output().unwrap();
    let created: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = format!("{}@", text(&id.stdout).trim());
    let operator = created["created_by"].as_str().unwrap();
    assert!(operator.starts_with(&expected), "{operator}");
}
