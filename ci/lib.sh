# Shared by the scripts in ci/, which source this file first. Changes to the repository's root.
# shellcheck shell=bash
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The folder in which the scripts install tools. Delete it to install them again.
tools=${WORKSPACE_TOOLS:-$HOME/.cache/workspace-management-tools}
export PATH=$tools/bin:$PATH
export SAM_CLI_TELEMETRY=0 REDOCLY_TELEMETRY=off AWS_EC2_METADATA_DISABLED=true
# One test panics on purpose. Its backtrace would clutter the output.
export RUST_BACKTRACE=0
export PYTHONDONTWRITEBYTECODE=1
# CI compiles each crate once, and nobody debugs the programs.
[ "${CI-}" != true ] || export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0

# The processes that a script starts in the background. They are stopped when it exits.
background=()
trap 'kill "${background[@]}" 2>/dev/null || true; wait' EXIT

fail() {
  printf '%s: %s\n' "$0" "$*" >&2
  exit 1
}

# need COMMAND...: fails if a command is not installed.
need() {
  local command
  for command; do
    command -v "$command" >/dev/null || fail "$command is not installed"
  done
}

# cargo_tool NAME VERSION [OPTION...]: installs a tool from crates.io. Without optimization, because
# optimizing a tool takes longer than it saves.
cargo_tool() {
  # One target folder, because the tools share dependencies.
  CARGO_TARGET_DIR=$tools/target cargo install --quiet --locked --debug --root "$tools" "$1@$2" "${@:3}"
}

# python_tools GROUP: installs a group of ci/pyproject.toml into a virtual environment, as locked in
# ci/uv.lock, and puts its commands on PATH. uv checks the hash of each package.
python_tools() {
  local environment=$tools/$1
  need python3
  if ! cmp -s ci/uv.lock "$environment/uv.lock"; then
    python3 -m venv --clear "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check --requirement ci/uv.txt
    VIRTUAL_ENV=$environment "$environment/bin/uv" sync --quiet --project ci --frozen --active --only-group "$1"
    cp ci/uv.lock "$environment"
  fi
  export PATH=$environment/bin:$PATH
}

# node_tools: installs the packages in ci/package.json into $tools/node.
node_tools() {
  need npm
  if ! cmp -s ci/package-lock.json "$tools/node/installed.json"; then
    mkdir -p "$tools/node"
    cp ci/package.json ci/package-lock.json ci/.npmrc "$tools/node/"
    npm ci --silent --prefix "$tools/node"
    cp ci/package-lock.json "$tools/node/installed.json"
  fi
}

# debian_package COMMAND PACKAGE...: installs Debian packages if the command is missing.
debian_package() {
  local as_root=()
  command -v "$1" >/dev/null && return
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  { "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${@:2}" >/dev/null; } ||
    fail "$1 is not installed, and installing Debian packages failed: ${*:2}"
}

# lambda_architecture: prints the architecture of this machine as AWS names it.
lambda_architecture() {
  case $(uname -m) in
    x86_64) echo x86_64 ;;
    aarch64) echo arm64 ;;
    *) fail "Lambda does not support the architecture $(uname -m)" ;;
  esac
}

# version: prints the version of the project.
version() {
  sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml
}

# free_port: prints a port on which no process listens.
free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# start COMMAND...: starts a process, and sets `log` to a file with its output. The process is
# stopped when the script exits. Call `wait_for` next.
start() {
  started=$*
  log=$(mktemp)
  "$@" >"$log" 2>&1 &
  background+=($!)
}

# wait_for SECONDS COMMAND...: waits until the command succeeds. If the process that was started
# last ends first, or the time is over, prints the end of that process's output and fails.
wait_for() {
  local seconds=$1 end=$((SECONDS + $1)) process=${background[-1]} status=0 reason=
  shift
  until timeout 10 "$@" >/dev/null 2>&1; do
    if ! kill -0 "$process" 2>/dev/null; then
      wait "$process" || status=$?
      reason="exited with status $status"
    elif [ "$SECONDS" -ge "$end" ]; then
      reason="is running, but not ready after $seconds s"
    fi
    if [ -n "$reason" ]; then
      printf 'the last output of %s:\n' "$started" >&2
      tail -n 20 "$log" >&2
      fail "$started $reason. Waited for: $*"
    fi
    sleep 0.1
  done
}

# serve [OPTION...]: starts `cargo serve`, on free ports unless options are given, and waits until
# it listens. Sets `served` to a file with its output, `url` to the URL of the API, `key` to the
# demo key, and AWS_ENDPOINT_URL_DYNAMODB to the URL of DynamoDB.
serve() {
  [ $# -gt 0 ] || set -- --port 0 --dynamodb-port 0
  cargo build --quiet --locked --package workspace-local
  # Not with Cargo, which waits while a different check compiles.
  start "${CARGO_TARGET_DIR:-target}/debug/serve" "$@"
  served=$log
  wait_for 30 grep -q '^curl' "$served"
  url=$(sed -n 's/^listening on //p' "$served")
  key=$(sed -n 's/^key: //p' "$served")
  AWS_ENDPOINT_URL_DYNAMODB=$(sed -n 's/^dynamodb on //p' "$served")
  export url key AWS_ENDPOINT_URL_DYNAMODB
}

# start_moto: starts moto, which emulates AWS, with the bucket `artifacts`. The variables of AWS then name it.
start_moto() {
  local port
  need curl
  port=$(free_port)
  start moto_server --port "$port"
  # moto's CloudFormation requires the host name localhost.
  export AWS_ACCESS_KEY_ID=testing AWS_SECRET_ACCESS_KEY=testing AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1 \
    AWS_ENDPOINT_URL=http://localhost:$port
  wait_for 60 curl --silent --fail --output /dev/null "$AWS_ENDPOINT_URL/moto-api/"
  python3 -c 'import boto3; boto3.client("s3").create_bucket(Bucket="artifacts")'
}

# check_function FILE [RUNNER]: checks the size of a compiled function and the glibc that it needs,
# and runs the tests of the compiled function. RUNNER is a command that runs a function whose
# architecture is not this machine's.
check_function() {
  local size zipped glibc
  need readelf
  size=$(stat -c %s "$1")
  zipped=$(python3 -c 'import sys, zlib; print(len(zlib.compress(open(sys.argv[1], "rb").read())))' "$1")
  printf 'binary: %s bytes, zipped: %s bytes\n' "$size" "$zipped"
  [ "$size" -le $((6 * 1024 * 1024)) ] || fail "the binary is larger than 6 MiB"
  [ "$zipped" -le $((5 * 512 * 1024)) ] || fail "the zipped binary is larger than 2.5 MiB"

  glibc=$(readelf --version-info "$1" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -Vu | tail -1)
  printf 'glibc: %s\n' "$glibc"
  # Amazon Linux 2023 has glibc 2.34.
  [ "$(printf '%s\n2.34\n' "$glibc" | sort -V | tail -1)" = 2.34 ] || fail "the binary needs glibc $glibc"

  WORKSPACE_MANAGEMENT_BINARY=$1 WORKSPACE_MANAGEMENT_RUNNER=${2-} cargo test --locked --test lambda
}

# send_as_pasted FILE: sends each request that `cargo serve` printed. Each must get a 204.
send_as_pasted() {
  local request status
  while read -r request; do
    status=$(eval "$request --silent --output /dev/null --write-out '%{http_code}'")
    printf '%s %s\n' "$status" "$(cut -d' ' -f3 <<<"$request")"
    [ "$status" = 204 ] || return 1
  done < <(grep '^curl' "$1")
}
