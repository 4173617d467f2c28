# What .ci/run and .ci/rehearse install, to be sourced from the project's root: from PyPI, npm and crates.io into a folder outside
# the tree (WORKSPACE_TOOLS, default ~/.cache/workspace-management-tools), and what Debian has from its packages.
set -euo pipefail

step() { printf '\n== %s [%ss]\n' "$*" "$SECONDS"; }
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

tools=${WORKSPACE_TOOLS:-$HOME/.cache/workspace-management-tools}
export SAM_CLI_TELEMETRY=0 AWS_EC2_METADATA_DISABLED=true REDOCLY_TELEMETRY=off

# python FOLDER REQUIREMENTS: a virtual environment of its own, made again when its requirements change.
python() {
  local folder=$tools/$1 requirements=$2
  if ! cmp -s "$requirements" "$folder/requirements.txt"; then
    python3 -m venv --clear "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements"
    cp "$requirements" "$folder/requirements.txt"
  fi
}

# debian COMMAND PACKAGES: packages of Debian's, where a command is missing.
debian() {
  local command=$1 as_root=()
  shift
  command -v "$command" >/dev/null && return
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  { "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >/dev/null; } ||
    fail "$command is not installed, and cannot be: it is in Debian's $*"
}

# wait_for SECONDS COMMAND...: until the command succeeds, or the time is over.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || fail "waited in vain for: $*"
    sleep 0.1
  done
}

# wait_for_requests SECONDS FILE: waits until `cargo serve` has printed a request for each event into the file.
wait_for_requests() {
  local count
  count=$(find events -maxdepth 1 -name '*.json' ! -name env.json | wc -l)
  wait_for "$1" sh -c "[ \$(grep -c ^curl $2) = $count ]"
}

# send_as_pasted FILE: the requests of a file as `cargo serve` prints them; each is to answer 204.
send_as_pasted() {
  local request status
  while read -r request; do
    status=$(eval "$request --silent --output /dev/null --write-out '%{http_code}'")
    printf '%s %s\n' "$status" "$(cut -d' ' -f3 <<<"$request")"
    [ "$status" = 204 ] || return 1
  done < <(grep '^curl' "$1")
}
