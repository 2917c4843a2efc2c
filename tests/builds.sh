#!/bin/sh
#
# builds.sh - what `make check` does not see in one build: other compilers,
# sanitizers, other instruction sets.
#
#   tests/builds.sh BUILD [STEP...]     all steps, or these: clang asan tsan sets
#
# BUILD is where `make check` ran. The steps that build do so below it, with
# -O1, and only what they run. What this machine lacks is left out, and said;
# so is what would begin after BUILDS_UNTIL, in seconds since 1970.
# `./bootstrap check` does all of it that fits into its minutes.
set -u

top=$(cd "$(dirname "$0")/.." && pwd)
jobs=$(getconf _NPROCESSORS_ONLN 2> /dev/null || echo 2)

[ $# -gt 0 ] || {
    sed -n '3,12s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
build=$(cd "$1" && pwd) || exit 1
shift
[ $# -gt 0 ] || set -- sets asan tsan clang
n_failed=0

now() { date +%s; }

say() { printf '%s\n' "builds: $*"; }

skip() { say "skipped: $*"; }

fail() {
    say "FAIL: $*"
    n_failed=$((n_failed + 1))
}

# The tests of the tree whose names have this pattern.
tests_like() {
    make -s -C "$build" tell-tests | tr ' ' '\n' | grep -E -- "$1"
}

# ---- Other builds ----

# can_run COMPILER FLAGS: can it build a program that runs?
can_run() {
    echo 'int main(void) { return 0; }' > "$build/can-run.c"
    # shellcheck disable=SC2086
    (cd "$build" && $1 $2 can-run.c -o can-run && ./can-run) > \
        "$build/can-run.log" 2>&1
    is=$?
    rm -f "$build/can-run.c" "$build/can-run" "$build/can-run.log"
    return $is
}

# late STEP: it would begin too late, and is left out.
late() {
    [ "$(now)" -gt "${BUILDS_UNTIL:-$(now)}" ] || return 1
    skip "$1: it is late; tests/builds.sh $build ${1%%:*}"
}

# other_build NAME TESTS CONFIGURE...: configures BUILD/NAME, builds the program
# and these tests, and runs them.
other_build() {
    name=$1 tests=$2
    shift 2
    start=$(now)
    late "$name" && return
    mkdir -p "$build/$name"
    log=$build/$name/builds.log
    programs=$(printf '%s\n' $tests | grep -v '\.sh$')
    if ! (cd "$build/$name" && {
        [ -f Makefile ] && [ Makefile -nt "$top/configure" ] ||
            "$top/configure" -q CFLAGS='-g -O1' "$@"
    } && make -s -j"$jobs" lmquant $programs $helpers) > "$log" 2>&1; then
        tail -n 30 "$log"
        fail "$name: it does not build"
        return
    fi
    middle=$(now)
    # What ran before is not run again without this.
    (cd "$build/$name" && rm -f $(printf '%s.trs ' $tests) &&
        make -s -j"$jobs" check-TESTS TESTS="$(echo $tests)" \
            check_PROGRAMS= check_LTLIBRARIES= VERBOSE=1) \
        > "$log" 2>&1 || {
        grep -E '^(FAIL|ERROR)' "$log"
        tail -n 60 "$log"
        fail "$name: its tests"
        return
    }
    say "$name: $(printf '%s\n' $tests | wc -l | tr -d ' ') tests," \
        "built in $((middle - start)) s, run in $(($(now) - middle)) s"
}

# What the shell tests need beside the program.
helpers="tests/build/is_json tests/build/synth tests/cli/in_terminal
    tests/runtime/golden tests/make/make_family tests/make/make_files
    sample.txt"

# Another compiler, without a warning, gives the same bits.
step_clang() {
    can_run clang '' || {
        skip "clang: there is none"
        return
    }
    other_build clang "tests/runtime/test_golden.sh tests/quantize/test_group
        tests/runtime/test_narrow tests/cli/test_usage.sh" \
        CC=clang --enable-werror
}

# Hostile files, and what the command line makes of them.
step_asan() {
    can_run "${CC:-cc}" '-fsanitize=address,undefined' || {
        skip "asan: ${CC:-cc} has no sanitizers that run here"
        return
    }
    other_build asan "$(tests_like '^tests/(formats|fuzz|quantize)/.*[^h]$')
        $(tests_like '/test_(tokenizer|chat|recipe|set_damage|gguf_meta)')
        tests/cli/test_files.sh tests/cli/test_outputs.sh" \
        --enable-asan --enable-ubsan
}

# Where threads meet.
step_tsan() {
    can_run "${CC:-cc}" '-fsanitize=thread' || {
        skip "tsan: ${CC:-cc} has no sanitizer for threads that runs here"
        return
    }
    other_build tsan "tests/base/test_team tests/runtime/test_threads
        tests/convert/test_convert" --enable-tsan
}

# ---- Without the best instruction set ----

kernel_tests="tests/runtime/test_logits tests/quantize/test_group
    tests/quantize/test_tiles tests/validate/test_validate"

set_in_use() {
    LMQUANT_CPU=$1 "$build/lmquant" --version -v |
        sed -n 's/^instruction set: //p'
}

step_sets() {
    best=$(set_in_use '')
    for cpu in c avx2 avxvnni avx512vnni amx neon; do
        if [ "$cpu" = "$best" ]; then
            continue # what make check ran with
        elif [ "$(set_in_use $cpu)" != "$cpu" ]; then
            skip "sets: $cpu: not on this machine"
            continue
        fi
        start=$(now)
        late "sets: $cpu" && continue
        running=
        for test in $kernel_tests; do
            (cd "$build" && LMQUANT_CPU=$cpu srcdir=$top \
                top_builddir=$build exec "$test" > "$test.$cpu.out" 2>&1) &
            running="$running $!:$test"
        done
        for one in $running; do
            test=${one#*:}
            wait "${one%%:*}" || {
                tail -n 20 "$build/$test.$cpu.out"
                fail "sets: $test with $cpu"
            }
            rm -f "$build/$test.$cpu.out"
        done
        say "sets: $cpu in the place of $best: $(($(now) - start)) s"
    done
}

# ---- All of it ----

for step in "$@"; do
    case $step in
    clang | asan | tsan | sets) "step_$step" ;;
    *)
        echo "builds: '$step' is no step" >&2
        exit 2
        ;;
    esac
done
[ $n_failed -eq 0 ]
