# Functions of .ci/run and .ci/rehearse. Source this file from the project's root. Tools from PyPI,
# npm and crates.io are installed in $WORKSPACE_TOOLS (default:
# ~/.cache/workspace-management-tools). Other tools are installed as Debian packages.
set -euo pipefail

step() { printf '\n== %s [%ss]\n' "$*" "$SECONDS"; }
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

tools=${WORKSPACE_TOOLS:-$HOME/.cache/workspace-management-tools}
export SAM_CLI_TELEMETRY=0 AWS_EC2_METADATA_DISABLED=true REDOCLY_TELEMETRY=off

# python FOLDER REQUIREMENTS: creates a virtual environment if it is missing or out of date.
python() {
  local folder=$tools/$1 requirements=$2
  if ! cmp -s "$requirements" "$folder/requirements.txt"; then
    python3 -m venv --clear "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements"
    cp "$requirements" "$folder/requirements.txt"
  fi
}

# debian COMMAND PACKAGES...: installs Debian packages if the command is missing.
debian() {
  local command=$1 as_root=()
  shift
  command -v "$command" >/dev/null && return
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  { "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >/dev/null; } ||
    fail "$command is missing, and installing the Debian package $* failed"
}

# wait_for SECONDS COMMAND...: waits until the command succeeds. Fails after the timeout.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || fail "timed out waiting for: $*"
    sleep 0.1
  done
}

# wait_for_requests SECONDS FILE: waits until `cargo serve` has printed a request for each event to
# the file.
wait_for_requests() {
  local count
  count=$(find events -maxdepth 1 -name '*.json' ! -name env.json | wc -l)
  wait_for "$1" sh -c "[ \$(grep -c ^curl $2) = $count ]"
}

# send_as_pasted FILE: sends the requests that `cargo serve` printed. Each must return 204.
send_as_pasted() {
  local request status
  while read -r request; do
    status=$(eval "$request --silent --output /dev/null --write-out '%{http_code}'")
    printf '%s %s\n' "$status" "$(cut -d' ' -f3 <<<"$request")"
    [ "$status" = 204 ] || return 1
  done < <(grep '^curl' "$1")
}
