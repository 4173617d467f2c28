# Replaces commands in the blocks of the documentation. With MODE=run, the blocks run on a local
# service, which needs no waits, and every failure is reported. With MODE=check, the arguments of
# `workspacectl` are checked, and other commands do nothing.

# Writes to a file, because a block can lose an exit code, as `export A=$(b)` does.
fail() {
  printf '%s\n' "$*" >>"$FAILURES" && return 1
}

# Checks arguments. With one table and no region, every command fails before it connects to
# anything. An invalid command line fails earlier, with 2.
parse() {
  local error code=0
  error=$(
    unset "${!AWS_@}"
    AWS_EC2_METADATA_DISABLED=true TEAMS_TABLE=none "$WORKSPACECTL" "$@" 2>&1 >/dev/null
  ) || code=$?
  [ $code -le 1 ] || fail "workspacectl $*: $error"
}

workspacectl() {
  case $MODE in
    check) parse "$@"; echo placeholder ;;
    # A reader confirms what the command asks.
    run) WORKSPACECTL_WAIT=0 "$WORKSPACECTL" "$@" --yes || fail "workspacectl $*: exit code $?" ;;
  esac
}

# Has the aliases in .cargo/config.toml.
cargo() {
  case $MODE,$1 in
    *,serve) printf '%s\n' "$*" >>"$SERVES" ;;
    *,ctl) workspacectl "${@:2}" ;;
    run,*) fail 'cargo cannot run here: mark the block as `sh needs=cargo`' ;;
  esac
}

if [ "$MODE" = run ]; then
  curl() { command curl --fail-with-body --silent --show-error "$@" || fail "curl $*: exit code $?"; }
  # The exit code of a line, of which its reader may notice nothing.
  trap 'fail "$BASH_COMMAND: exit code $?"' ERR
else
  PATH=/none
  command_not_found_handle() { echo placeholder; }
  cd() { :; }
  .() { :; }
fi
