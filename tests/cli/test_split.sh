#!/bin/sh
#
# test_split.sh - split and join: what convert writes, and the mistakes that
# people make with them.
set -u
. "${srcdir:-.}/tests/library.sh"

cd "$work" || exit 99
export OMP_NUM_THREADS=1
mkdir set parts none

# refused STATUS TEXT COMMAND...: one sentence with this text, nothing written.
refused() {
    wanted=$1 text=$2
    shift 2
    ls -lR > before
    expect "$wanted" "$lmquant" "$@"
    says "$text"
    is_one_sentence "$*"
    [ -s stdout ] && fail "a refusal prints a result: $*"
    ls -lR | grep -v ' std[eo]' > after
    # A lock that was there for a moment is a folder's last change.
    grep -v ' std[eo]\| before\| after\|^total\|^d' before > before.2
    grep -v ' before\| after\|^total\|^d' after > after.2
    rm -f before after
    cmp -s before.2 after.2 || fail "files changed: $*"
    rm -f before.2 after.2
}

for options in "" "--layout=rows -z -g 32"; do
    for size in 60K 150K 1G; do
        rm -rf set/* parts/* *.lmq
        expect 0 "$lmquant" convert -q $options "$fable" m.lmq
        expect 0 "$lmquant" convert -q $options --shard-size $size "$fable" \
            set/m.lmq
        expect 0 "$lmquant" split -q --shard-size $size m.lmq parts
        diff -r set parts > /dev/null || fail "split $options $size"
        expect 0 "$lmquant" join -q set one.lmq
        cmp -s one.lmq m.lmq || fail "join $options $size"
    done
done

# The report, and the summary.
expect 0 "$lmquant" split --json --force --shard-size 100K m.lmq parts
n=$(ls parts | wc -l)
case $("$is_json" files.$((n - 1)).name < stdout) in
*m-0000$n-of-0000$n.lmq*) ;;
*) fail "the report names other files" ;;
esac
[ "$("$is_json" output_bytes < stdout)" -eq "$(cat parts/* | wc -c)" ] ||
    fail "the report counts other bytes"
expect 0 "$lmquant" join parts/m-00002-of-* again.lmq
grep -q "1 file, .* ($(wc -c < again.lmq) bytes)" stdout ||
    fail "the summary of join: $(cat stdout)"
rm -f again.lmq

# Mistakes.
refused 2 "--shard-size says how large" split m.lmq parts
refused 2 "--shard-size is 10, but what describes the model" \
    split --shard-size 10 m.lmq none
refused 1 "mkdir -p" split --shard-size 1M m.lmq nowhere
refused 1 "is a file, expected a folder" split --shard-size 1M m.lmq one.lmq
refused 1 "exists already" split --shard-size 1M m.lmq parts
refused 1 "exists already" join parts one.lmq
refused 2 "a part of what is read" join -f parts parts/m-00001-of-0000$n.lmq
refused 2 "a part of what is read" join -f m.lmq m.lmq
refused 2 "a part of what is read" split -f --shard-size 100K parts parts
refused 2 "the name says GGUF" join parts one.gguf
refused 3 "expected a container" join "$fable" x.lmq
refused 3 "hint: lmquant convert makes one" split --shard-size 1M "$fable" set
refused 1 "nowhere" join nowhere x.lmq
: > empty.lmq
refused 3 "empty.lmq: " join empty.lmq x.lmq
mv parts/m-00002-of-0000$n.lmq hidden
refused 3 "lacks m-00002-of-0000$n.lmq" join parts x.lmq
mv hidden parts/m-00002-of-0000$n.lmq

# Killed and out of space: nothing is left.
expect 0 "$synth" --sparse --dim 1024 --hidden 4096 --layers 2 \
    --heads 16 --kv-heads 4 --vocab 8000 big
expect 0 "$lmquant" convert -q big big.lmq
rm -rf set/* parts/*
"$lmquant" split -q -j 1 --shard-size 10M big.lmq parts > stdout 2> stderr &
pid=$!
sleep 0.02
kill -KILL $pid 2> /dev/null
wait $pid
[ $? -eq 137 ] && [ -n "$(ls -A parts | grep -v '^\.lmquant')" ] &&
    fail "a killed split leaves $(ls -A parts)"
if ! has_sanitizer; then
    peak() {
        env time -f %M "$@" 2>&1 > /dev/null | tail -n 1
    }
    if env time -f %M true > /dev/null 2>&1; then
        rm -rf set/* parts/*
        # 40 MB of values in a few MB of buffers.
        m=$(peak "$lmquant" split -q -j 1 --shard-size 10M big.lmq set)
        [ "$m" -lt 40000 ] || fail "split takes $m KB"
        m=$(peak "$lmquant" join -q -j 1 set joined.lmq)
        [ "$m" -lt 40000 ] || fail "join takes $m KB"
        cmp -s joined.lmq big.lmq || fail "the joined file is another one"
    fi
fi
finish
