# Replaces `cargo` and `workspacectl` in the blocks that do not run. It only checks the arguments.

name=${0##*/}
command="$name $*"

# Writes a failure to a file, because blocks do not stop at a failure.
fail() {
    printf '%s: %s\n' "$command" "$1" >>"$DOCS_FAILURES"
    exit 1
}

if [ "$name" = cargo ]; then
    case ${1-} in
        +*) shift ;;
    esac
    case ${1-} in
        ctl) shift ;;
        serve) ;;
        about | add | bench | build | check | clippy | cyclonedx | deny | doc | fmt | install | \
            lambda | run | test) exit ;;
        *) fail "the subcommand is not in the list of ctl/tests/docs/check.sh" ;;
    esac
fi
case " $* " in
    *" serve "*) set -- "$@" --help ;;
esac

# With one table and no region, every command fails before it connects to anything. An invalid
# command line fails earlier and has the exit code 2.
unset "${!AWS_@}"
export AWS_EC2_METADATA_DISABLED=true "$DOCS_TABLE=none"
error=$("$DOCS_WORKSPACECTL" "$@" 2>&1 >/dev/null)
[ $? -le 1 ] || fail "$error"
echo placeholder
