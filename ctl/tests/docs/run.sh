# Replaces a command in the blocks that run. It is installed under the name of each such command.

name=${0##*/}
command="$name $*"

# Also writes a failure to a file, because a block can lose the exit code, as `export A=$(b)` does.
fail() {
    printf '%s: %s\n' "$command" "$1" | tee -a "$DOCS_FAILURES" >&2
    exit 1
}

ctl() {
    case " $* " in
        *" --url"* | *" --help "*) ;;
        *" doctor "*) set -- "$@" --url "$DOCS_API" ;;
    esac
    "$DOCS_WORKSPACECTL" "$@" || fail "exit code $?"
}

# Starts a server on free ports, waits until it listens, and stops it.
serve() {
    "$DOCS_WORKSPACECTL" "$@" --help >/dev/null || fail "exit code $?"
    local arguments=() output line
    while [ $# -gt 0 ]; do
        case $1 in
            --port | --dynamodb-port) shift ;;
            --port=* | --dynamodb-port=*) ;;
            *) arguments+=("$1") ;;
        esac
        shift
    done
    output=$(mktemp -d)/output
    mkfifo "$output"
    "$DOCS_WORKSPACECTL" "${arguments[@]}" --port 0 --dynamodb-port 0 >"$output" &
    exec 3<"$output"
    IFS= read -r line <&3 || fail "exited before it listened"
    printf '%s\n' "$line"
    kill $!
    wait $! 2>/dev/null
    case $line in
        "listening on http"* | '{"dynamodb":'*) ;;
        *) fail "did not print that it listens" ;;
    esac
}

case $name in
    curl)
        "$DOCS_CURL" --fail-with-body --silent --show-error "$@" || fail "exit code $?"
        exit
        ;;
    workspacectl) ;;
    cargo)
        case ${1-} in
            ctl) shift ;;
            serve) ;;
            *) fail 'cannot run inside the test: mark the block as `sh needs=cargo`' ;;
        esac
        ;;
    *) fail 'cannot run inside the test: mark the block as `sh needs=TOOL`' ;;
esac
case " $* " in
    *" --help "*) ctl "$@" ;;
    *" serve "*) serve "$@" ;;
    *) ctl "$@" ;;
esac
