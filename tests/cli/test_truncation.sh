#!/bin/sh
# A model that is truncated while it is used ends the command with a message
# and 1, and leaves nothing behind; with --no-mmap it goes on.
#
# The file is cut when the command has shown that it computes.
set -u
. "${srcdir:-.}/tests/library.sh"

# Threads that wait for each other take minutes on a busy machine.
export OMP_NUM_THREADS=1

expect 0 "$lmquant" convert -q "$fable" "$work/good.lmq"

# cut WHAT COMMAND...: runs it on $work/cut.lmq, which is cut after a moment,
# sooner each time until it happens within the work.
cut() {
    what=$1
    shift
    for delay in 0.3 0.1 0.03 0.01; do
        cp "$work/good.lmq" "$work/cut.lmq"
        "$@" >"$work/out" 2>"$work/err" &
        pid=$!
        sleep $delay
        : >"$work/cut.lmq"
        wait $pid
        code=$?
        [ $code -eq 0 ] && continue
        [ $code -eq 1 ] || fail "$what: exit $code: $(cat "$work/err")"
        grep -q "cut.lmq.*became shorter while it " "$work/err" && break
        fail "$what says: $(cat "$work/err")"
    done
    [ $code -eq 1 ] || echo "$what: was always faster than the knife"
    left=$(find "$work" -name '.lmquant*')
    [ -z "$left" ] || fail "$what left $left"
}

cut run "$lmquant" run -n 400 --temp=1 "$work/cut.lmq" Once
cut bench "$lmquant" bench -p 200 -n 200 "$work/cut.lmq"
cut validate "$lmquant" validate -q --attribute "--report=$work/page.html" \
    "$fable" "$work/cut.lmq" "$fable/held-out-b.txt"
[ ! -e "$work/page.html" ] || [ $code -eq 0 ] || fail "validate left a page"

# A conversation goes on only with weights that are in memory.
mkfifo "$work/questions"
for how in --no-mmap -q; do
    cp "$work/good.lmq" "$work/cut.lmq"
    rm -f "$work/out" # of the one before, which would look like an answer
    "$lmquant" run $how --chat --chat-format=llama2 -t 0 -n 9 "$work/cut.lmq" \
        <"$work/questions" >"$work/out" 2>"$work/err" &
    pid=$!
    exec 9>"$work/questions"
    echo Once >&9
    n=0
    while [ ! -s "$work/out" ] && [ $n -lt 200 ]; do
        sleep 0.1
        n=$((n + 1))
    done
    : >"$work/cut.lmq"
    echo Once >&9
    exec 9>&-
    wait $pid
    echo "$how $?" >>"$work/codes"
done
[ "$(cat "$work/codes")" = "--no-mmap 0
-q 1" ] || fail "conversations end with $(cat "$work/codes" "$work/err")"

cp "$work/good.lmq" "$work/cut.lmq"
"$lmquant" run --no-mmap -q -n 400 --temp=1 "$work/cut.lmq" Once \
    >"$work/out" 2>"$work/err" &
pid=$!
sleep 0.3
: >"$work/cut.lmq"
wait $pid
code=$?
[ $code -eq 0 ] || grep -q "shorter\|bytes" "$work/err" ||
    fail "run --no-mmap: exit $code: $(cat "$work/err")"
finish
