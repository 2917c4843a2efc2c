#!/bin/sh
#
# test_merge.sh - a validation in parts, merged in any order: the report, the
# page and the gates of one run, byte for byte but for times; and parts that
# are missing, there twice, damaged or of another run.
set -u
. "${srcdir:-.}/tests/library.sh"

cd "$work" || exit 99
export OMP_NUM_THREADS=1
make_family=$top_builddir/tests/make/make_family
head -c 900 "$fable/held-out-a.txt" > a.txt
head -c 700 "$fable/held-out-b.txt" > b.txt
expect 0 "$lmquant" convert -q "$fable" fable.lmq
expect 0 "$lmquant" convert -q -g 32 -e q4 "$fable" coarse.lmq

refused() { # STATUS TEXT ARGUMENTS...
    wanted=$1 text=$2
    shift 2
    expect "$wanted" "$lmquant" "$@"
    says "$text"
    is_one_sentence "$*"
}

# parts N ARGUMENTS...: 1 to N as part-I.json, the last first.
parts() {
    n=$1 i=$1
    shift
    rm -f part-*.json
    while [ $i -gt 0 ]; do
        expect 0 "$lmquant" validate -q --part $i/$n -o part-$i.json "$@"
        i=$((i - 1))
    done
}

# Files in an order that the seed chooses.
seed=3
shuffled() {
    for file; do
        seed=$(((seed * 1103515245 + 12345) % 2147483648))
        echo "$seed $file"
    done | sort | cut -d ' ' -f 2
}

figures() {
    grep -v '"seconds"\|"tokens_per_second"' "$1"
}

# merged N ARGUMENTS...: the same as one run, which is in one.json.
merged() {
    parts "$@"
    "$lmquant" merge --json $(shuffled part-*.json) > merged.json ||
        fail "merge $*"
    figures merged.json > is
    figures one.json > good
    cmp -s is good || {
        fail "parts differ from one run: $*"
        diff is good | head -5
    }
}

# one ARGUMENTS...
one() {
    expect 0 "$lmquant" validate -q --json "$@"
    cp stdout one.json
}

# ---- The same digits ----

for n in 1 2 3 7 64; do
    [ $n -gt 1 ] || one -c 32 "$fable" fable.lmq a.txt b.txt
    merged $n -c 32 "$fable" fable.lmq a.txt b.txt
done
for options in "--split-documents" "--score second-half" "--stride 11" \
    "--activations q8 --kv q8" "--kv f16-q8" "--max-tokens 99" "--memory 1600K"; do
    one -c 32 $options "$fable" fable.lmq a.txt
    merged 3 -c 32 $options "$fable" fable.lmq a.txt
done
# One window is none for the second part: its questions compare checksums too.
cp fable.lmq bad.lmq
printf 'abcd' | dd of=bad.lmq bs=1 seek=$(($(wc -c < bad.lmq) / 2)) \
    conv=notrunc 2> /dev/null
echo '{"prompt":"She","choices":[" was"," cat"],"answer":0}' > few.jsonl
echo '{"prompt":"It","choices":[" was"," cat"],"answer":0}' >> few.jsonl
for i in 1 2; do
    refused 3 "is damaged" validate -q --part $i/2 --max-tokens 30 \
        --task few.jsonl "$fable" bad.lmq a.txt
done
# Several models, also as others compute, and questions; by any number of
# threads.
{
    echo '{"prompt":"The fox","choices":[" ran."," sang a song."],"answer":0}'
    echo '{"prompt":"She","choices":[" was"," cat"," of"],"answer":1}'
    echo '{"prompt":"One day","choices":[","," he"],"answer":1}'
    echo '{"prompt":"It was","choices":[" a"," it"],"answer":0}'
    echo '{"prompt":"Then","choices":[" they"," who"],"answer":0}'
    echo '{"prompt":"Once upon a","choices":[" time"," q"],"answer":0}'
} > task.jsonl
judge="-c 64 --split-documents --emulate q4_0 --task task.jsonl $fable"
judge="$judge coarse.lmq fable.lmq --text a.txt --text b.txt"
one $judge
merged 2 $judge
merged 7 $judge -j 2
"$is_json" models.0.task.questions < merged.json > value
[ "$(cat value)" = 6 ] || fail "merged questions: $(cat value)"
for family in llama3 phi3-long mixtral qwen3next gemma4 gpt-oss; do
    rm -rf family
    expect 0 "$make_family" --vocab 512 $family family
    one -c 24 --tokenizer "$fable/tokenizer.json" --max-tokens 150 family \
        --emulate q8_0 --text a.txt
    merged 3 -c 24 --tokenizer "$fable/tokenizer.json" --max-tokens 150 \
        family --emulate q8_0 --text a.txt
    [ "$("$is_json" kld.mean < merged.json)" != 0 ] || fail "no divergence"
done

# ---- What comes of it ----

common="-c 64 $fable coarse.lmq a.txt"
parts 3 $common
one $common
page() { # COMMAND...: without times.
    expect 0 "$@" -f -o page.html
    sed '/made by/s/, [0-9.]* s</</' page.html
}
page "$lmquant" validate -q $common > good.html
page "$lmquant" merge -q part-*.json > is.html
cmp -s good.html is.html || fail "another page"
grep -q '</html>' is.html || fail "no page"
"$lmquant" validate --markdown $common > good.md
"$lmquant" merge --markdown part-2.json part-3.json part-1.json > is.md
cmp -s good.md is.md || fail "another table"
"$lmquant" validate $common | sed '$d' > good.txt
"$lmquant" merge part-*.json | sed '$d' > is.txt
cmp -s good.txt is.txt || fail "another summary"
[ -s is.txt ] || fail "no summary"
expect 0 "$lmquant" merge -q --yaml part-*.json
expect 0 "$lmquant" merge -q --gate 'kld.mean<=9' part-*.json
expect 4 "$lmquant" merge -q --gate 'kld.mean<=1e-9' part-*.json
says "gate: kld.mean<=1e-9 does not hold"
expect 0 "$lmquant" merge -q --baseline one.json --gate 'kld.mean<=baseline' \
    --gate 'ppl_ratio<=baseline' part-*.json
expect 4 "$lmquant" merge -q --baseline one.json \
    --gate 'kld.mean<=baseline*0.9' part-*.json
expect 0 "$lmquant" validate -q --part 1/1 $common
cp stdout all.json
expect 0 "$lmquant" merge -q all.json

# ---- Wrong ones ----

refused 3 "1 of 3 parts is missing: 2" merge part-1.json part-3.json
refused 3 "2 of 3 parts are missing: 1, 3" merge part-2.json
cp part-2.json again.json
refused 3 "is part 2 of 3, as " merge part-*.json again.json
refused 3 "2 of 3 parts are missing: 1, 2" merge part-3.json
expect 0 "$lmquant" validate -q --part 2/4 -f -o again.json $common
refused 3 "again.json: is one of 4 parts, part-1.json of 3" \
    merge part-1.json again.json part-3.json
# other WHAT ARGUMENTS...: part 2 of another run is refused, and why.
other() {
    what=$1
    shift
    expect 0 "$lmquant" validate -q --part 2/3 -f -o again.json "$@"
    refused 3 "again.json: is of another run: $what is" \
        merge part-1.json again.json part-3.json
}
other text_crc32 -c 64 "$fable" coarse.lmq b.txt
other ctx -c 32 "$fable" coarse.lmq a.txt
other models.0.files.0 -c 64 "$fable" fable.lmq a.txt
other models.0.activations --activations f32 $common
other kv --kv q8 $common
other windows --max-tokens 77 $common
other reference.files.0 -c 64 fable.lmq coarse.lmq a.txt
other reference.description --rope-theta 5000 $common
other questions --task task.jsonl $common
other models.1.description -c 64 "$fable" coarse.lmq fable.lmq --text a.txt
sed 's/"version":"[^"]*"/"version":"9.9"/' part-2.json > again.json
refused 3 "again.json: is of another run: version is" \
    merge part-1.json again.json part-3.json

# damaged TEXT SED-EXPRESSION: of part 2.
damaged() {
    sed "$2" part-2.json > again.json
    cmp -s part-2.json again.json && fail "not damaged: $2"
    refused 3 "$1" merge part-1.json again.json part-3.json
}
damaged "'models.0.kld'" 's/"kld":"3f[0-9a-f]*","delta/"kld":"3f","delta/'
damaged "'models.0.kld'" 's/"kld":"3f\([0-9a-f]*","delta\)/"kld":"7f\1/
    s/"kld":"7f......./"kld":"7ff0000/'
damaged "'models.0.delta_nll'" 's/"delta_nll":"../"delta_nll":"xy/'
damaged "'models.0.same_top1'" 's/"same_top1":"./"same_top1":"2/'
damaged "'models.0.same_top1'" 's/"same_top1":"./"same_top1":"/'
damaged "'models.0.sums.nll'" 's/"nll":"[^"]*"/"nll":"1@99"/'
damaged "'models.0.sums.nll'" 's/"nll":"[^"]*"/"nll":1/'
damaged "'models.0.positions" 's/"scored":[0-9]*,"kld"/"scored":0,"kld"/'
damaged "'models.0.layers.0'" 's/"numbers":[0-9]*/"numbers":-1/'
damaged "'models.0.layers'" 's/"layers":\[{[^}]*},/"layers":[/'
damaged "'models.0.logits_max_abs'" 's/"logits_max_abs":[0-9.]*/"logits_max_abs":-1/'
damaged "'models.0.bytes" 's/"lost":[0-9]*/"lost":99999999/'
damaged "'windows" 's/"windows":\[\[0,[0-9]*,[0-9]*\],/"windows":[/'
damaged "'windows" 's/"windows":\[\[0,/"windows":[[7,/'
damaged "'windows" 's/"windows":\[\[0,[0-9]*/"windows":[[0,1e9/'
damaged "is damaged: the CRC-32" 's/"lost":[0-9]*/"lost":50/'
damaged "is damaged: the CRC-32" 's/"kld":"3f[0-9a-f]\([0-9a-f]*","delta\)/"kld":"3f7\1/'
damaged "is damaged: the CRC-32" 's/"seconds":[0-9]/"seconds":9/'
damaged "is damaged: the CRC-32" 's/"crc32":/"crc32":1/'
damaged "is no JSON" 's/"models"/models/'
damaged "is no JSON" 's/"lost":/"gained":1,"lost":/'
damaged "is no part of a validation" 's/"part":2/"part":0/'
damaged "is no part of a validation" 's/"lmquant_part":1/"lmquant_part":0/'
damaged "of a newer form" 's/"lmquant_part":1/"lmquant_part":2/'
sed 's/"protocol":{"reference":{"path":"[^"]*"/"protocol":{"reference":{"path":3/' \
    part-1.json > again.json
refused 3 "'models.0.protocol'" merge again.json part-2.json part-3.json
# What is shown of a hostile part moves no cursor.
sed 's/"path":"coarse.lmq"/"path":"\\u001b[2Jx"/
    s/,"crc32":[0-9]*//' part-1.json > again.json
expect 0 "$lmquant" merge again.json part-2.json part-3.json
LC_ALL=C grep -q "$(printf '\033')" stdout && fail "an escape is shown"
# Another machine may have counted more than 32 bits can.
sed 's/"bytes":[0-9]*,"bits/"bytes":5000000000,"bits/g
    s/"numbers":[0-9]*/"numbers":5000000000/g
    s/,"crc32":[0-9]*//' part-1.json > again.json
expect 0 "$lmquant" merge again.json part-2.json part-3.json
head -c 1000 part-2.json > again.json
refused 3 "is no JSON" merge part-1.json again.json part-3.json
: > again.json
refused 3 "again.json" merge again.json
refused 3 "is no part of a validation" merge one.json
refused 3 "is no " merge fable.lmq
refused 1 "" merge nowhere.json

# A text with bytes of 0, as the reports then have them, too.
printf 'Once upon\000 a time there was\000 a fox. The end\000.\n' > zeros.txt
expect 0 "$lmquant" validate -q -f --part 1/2 -o zeros-1.json "$fable" \
    coarse.lmq zeros.txt -c 8
expect 0 "$lmquant" validate -q -f --part 2/2 -o zeros-2.json "$fable" \
    coarse.lmq zeros.txt -c 8
grep -q 'u0000' zeros-1.json zeros-2.json || fail "no 0 in the parts"
expect 0 "$lmquant" merge --json zeros-2.json zeros-1.json
cp stdout zeros.json
expect 0 "$lmquant" validate -q "$fable" coarse.lmq zeros.txt -c 8 \
    --baseline zeros.json --gate 'kld.mean<=baseline'

# ---- Signals ----

# Without a page, one who reads no more is no reason to go on: each of several
# writes would wait anew.
for i in 1 2 3 4 5 6; do
    cp fable.lmq many-$i.lmq
done
expect 0 "$lmquant" validate -q --part 1/1 -o many.json "$fable" many-?.lmq \
    --text a.txt -c 32
expect 0 "$lmquant" merge -v many.json
[ "$(wc -c < stdout)" -gt 8192 ] || fail "that is written at once"
mkfifo full
exec 9<> full
yes >&9 2> /dev/null &
filler=$!
# Again if all of it was written before the pipe was full.
status=0
while [ $status -eq 0 ]; do
    "$lmquant" merge -v many.json >&9 2> stderr &
    pid=$!
    sleep 0.3
    kill -TERM $pid 2> /dev/null
    at=0
    while kill -0 $pid 2> /dev/null && [ $at -lt 100 ]; do
        sleep 0.1
        at=$((at + 1))
    done
    kill -KILL $pid 2> /dev/null && fail "SIGTERM does not end a blocked merge"
    wait $pid
    status=$?
done
[ $status -eq 143 ] || fail "blocked merge: status $status: $(cat stderr)"
kill $filler
wait $filler 2> /dev/null
exec 9>&-

# While the page gets its name: it appears whole, beside nothing.
if has_sanitizer; then
    skip "sanitizers want to be loaded first"
else
    mkdir pages
    "$lmquant" merge -q -f -o good.html part-[123].json || fail "merge -o"
    at=1
    while
        echo old > pages/page.html
        FAULT_CLASS=rename FAULT_AT=$at FAULT_ERRNO=TERM FAULT_FD=9 \
            LD_PRELOAD=$top_builddir/tests/cli/fault_shim.so "$lmquant" merge \
            -q -f -o pages/page.html part-[123].json 9> hit 2> stderr
        status=$?
        [ -s hit ]
    do
        [ $status -eq 0 ] || fail "SIGTERM at $at: exit status $status"
        [ "$(ls -A pages)" = page.html ] ||
            fail "SIGTERM at $at leaves $(ls -A pages)"
        cmp -s pages/page.html good.html || fail "SIGTERM at $at: another page"
        at=$((at + 1))
    done
    [ $at -gt 1 ] || fail "no step was disturbed"
    # While it is tried whether files get names there.
    echo old > pages/page.html
    FAULT_CLASS=trial FAULT_AT=1 FAULT_ERRNO=TERM FAULT_FD=9 \
        LD_PRELOAD=$top_builddir/tests/cli/fault_shim.so "$lmquant" merge \
        -q -f -o pages/page.html part-[123].json 9> hit 2> stderr
    status=$?
    [ $status -eq 143 ] || [ ! -s hit ] ||
        fail "SIGTERM at the trial: exit status $status"
    [ "$(ls -A pages) $(cat pages/page.html)" = "page.html old" ] ||
        [ ! -s hit ] || fail "SIGTERM at the trial leaves $(ls -A pages)"
fi

# ---- Misuse ----

for option in "--gate kld.mean<=1" "--baseline one.json" --markdown --json \
    --yaml --attribute --floor; do
    refused 2 "${option%% *} does not go with --part" \
        validate --part 1/2 $option $common
done
refused 2 ".json is written" validate --part 1/2 -o x.lmq $common
refused 1 "part-1.json: exists" validate --part 1/3 -o part-1.json $common
refused 1 "" validate --part 1/3 -o nowhere/part.json $common
expect 2 "$lmquant" validate --part 1/3 -f -o a.txt $common
[ "$(wc -c < a.txt)" -eq 900 ] || fail "a part replaces its text"
cp part-1.json part.html
expect 2 "$lmquant" merge -f -o part.html part.html part-2.json part-3.json
cmp -s part.html part-1.json || fail "a page replaces a part"
refused 2 "wants standard output for itself" merge -o - --json part-1.json
# Before any part is read.
refused 2 "names no metric" merge --gate 'kdl.mean<=1' nowhere.json
refused 2 "goes with --baseline" merge --gate 'kld.mean<=baseline' part-1.json
refused 2 "expected: PART.json" merge
finish
