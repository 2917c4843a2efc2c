# library.sh - what the shell tests share; sourced after `set -u`.

# Absolute, for scripts that go to a folder of their own.
top_builddir=$(cd "${top_builddir:-.}" && pwd) || exit 99
srcdir=$(cd "${srcdir:-.}" && pwd) || exit 99
lmquant=$top_builddir/lmquant
synth=$top_builddir/tests/build/synth
is_json=$top_builddir/tests/build/is_json
in_terminal=$top_builddir/tests/cli/in_terminal
files=$srcdir/tests/files
fable=$srcdir/tests/data/fable
commands="convert validate plan run inspect verify diff export split join seal merge jobs bench tokenize"
work=$(mktemp -d "${TMPDIR:-/tmp}/lmquant-test-XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
n_failed=0

fail() {
    echo "FAIL: $*"
    n_failed=$((n_failed + 1))
}

skip() {
    echo "skipped: $*"
}

# Runs a command; stdout and stderr go to files, the status to $status.
run() {
    "$@" > "$work/stdout" 2> "$work/stderr"
    status=$?
}

# expect STATUS COMMAND...
expect() {
    wanted=$1
    shift
    run "$@"
    if [ $status -ne "$wanted" ]; then
        fail "exit status $status, expected $wanted: $*"
        sed 's/^/    /' "$work/stderr"
    fi
}

# says TEXT: stderr has it.
says() {
    grep -qF -- "$1" "$work/stderr" || {
        fail "stderr does not say '$1':"
        sed 's/^/    /' "$work/stderr"
    }
}

# One line that begins with "lmquant: ", perhaps a hint, nothing else that
# could move a cursor.
is_one_sentence() {
    LC_ALL=C awk '/^lmquant: / { n++ }
        !/^(lmquant|hint): / || /[\001-\037\177]/ { is_other = 1 }
        END { exit n != 1 || is_other || NR > 2 }' "$work/stderr" || {
        fail "not one sentence: $*"
        sed 's/^/    /' "$work/stderr"
    }
}

# Builds with sanitizers reserve terabytes of addresses and count memory of
# their own.
has_sanitizer() {
    ! (ulimit -v 1048576 && "$lmquant" --version) > /dev/null 2>&1
}

finish() {
    [ $n_failed -eq 0 ] || echo "$n_failed failed"
    [ $n_failed -eq 0 ]
    exit
}
