#!/bin/sh
#
# test_cli.sh - what the command line promises to scripts.
set -u
. "${srcdir:-.}/tests/library.sh"

good=$files/good-folder
cd "$work" || exit 99

# ---- Command lines ----

expect 2 "$lmquant"
expect 2 "$lmquant" fly
says "unknown command 'fly'"
is_one_sentence fly
expect 2 "$lmquant" help fly
expect 0 "$lmquant" --version
grep -q '^lmquant [0-9]' stdout || fail "--version says $(cat stdout)"
for asked in "-V -v" "-v -V" "--verbose --version"; do
    expect 0 "$lmquant" $asked
    grep -q '^instruction set: ' stdout || fail "$asked says $(cat stdout)"
done
for asked in "--version -q" "--quiet -V"; do
    expect 0 "$lmquant" $asked
    [ "$(wc -l < stdout)" = 1 ] || fail "$asked says $(cat stdout)"
done
expect 2 "$lmquant" --version -q -v
says "-q and -v exclude each other"
for asked in "help -q" "help -v -h" "-h --quiet" "help convert -h" \
    "help -q convert" "help convert -v" "-q help convert"; do
    expect 0 "$lmquant" $asked
    case $asked in
    *convert*) grep -q '^usage: lmquant convert' stdout ;;
    *) grep -q '^usage: lmquant COMMAND' stdout ;;
    esac || fail "$asked says $(cat stdout)"
done
expect 2 "$lmquant" help convert run
says "unexpected argument 'run'"
expect 0 "$lmquant" help
for command in $commands; do
    grep -q "^  $command " stdout || fail "help does not list $command"
done
for command in $commands; do
    expect 0 "$lmquant" help $command
    cp stdout help
    expect 0 "$lmquant" $command --help
    cmp -s stdout help || fail "help $command and $command --help differ"
    awk 'length > 80' help | grep -q . && fail "help $command is too wide"
    expect 2 "$lmquant" $command --fly
    says "unknown option '--fly'"
    is_one_sentence "$command --fly"
    expect 2 "$lmquant" $command -Q
    expect 2 "$lmquant" $command
    if grep -q -- --tokenizer help; then
        expect 2 "$lmquant" $command --tokenizer
        says "needs a value"
    fi
    expect 2 "$lmquant" $command --quiet=yes "$good" x y
    case $command in
    validate | plan | merge) continue ;; # any number of texts, of parts
    esac
    expect 2 "$lmquant" $command a b c
done
expect 2 "$lmquant" convert --group-size 48 "$good" x.lmq
expect 2 "$lmquant" convert --group-size 6x "$good" x.lmq
expect 2 "$lmquant" convert --method best "$good" x.lmq
expect 2 "$lmquant" convert --scales f64 "$good" x.lmq
expect 2 "$lmquant" convert --tie maybe "$good" x.lmq
expect 2 "$lmquant" convert --on-nonfinite pass "$good" x.lmq
expect 2 "$lmquant" convert -j 0 "$good" x.lmq
expect 2 "$lmquant" convert --progress=always "$good" x.lmq
expect 2 "$lmquant" convert --norm-eps=-1 "$good" x.lmq
expect 2 "$lmquant" inspect --stats "$good"
expect 2 "$lmquant" inspect --tensor nothing "$good"
says "has no tensor 'nothing'"
expect 2 "$lmquant" diff --gate snr_db "$good" "$good"
expect 2 "$lmquant" diff --gate 'nothing<1' "$good" "$good"
[ -e x.lmq ] && fail "a wrong command line wrote a file"
expect 1 "$lmquant" inspect nowhere
says "nowhere: cannot open: No such file"
expect 1 "$lmquant" convert "$good" no/where.lmq
expect 1 "$lmquant" convert nowhere x.lmq

# Rows of 96 in groups of 64 take the room of 128: groups of 32 unless others are
# asked for, and then what does not is told.
expect 0 "$lmquant" convert -n "$fable" x.lmq
! grep -q "filled up" stderr || fail "groups of 32 fit: $(cat stderr)"
grep -q "groups of 32" stdout || fail "no groups of 32: $(cat stdout)"
expect 0 "$lmquant" convert -n --json "$fable" x.lmq
grep -q '^  "group_size": 32,' stdout || fail "other groups than 32 for all"
expect 0 "$lmquant" convert -n -g 64 "$fable" x.lmq
grep -q -- "34 % more): --group-size=32 or --layout=rows is smaller" stderr ||
    fail "no word on groups that are filled up: $(cat stderr)"
expect 0 "$lmquant" convert -n -e q4 -g 256 "$fable" x.lmq
grep -q -- "144 % more): --group-size=32 is smaller" stderr ||
    fail "rows have 8 bits: $(cat stderr)"
expect 1 "$lmquant" diff "$good" nowhere
expect 1 "$lmquant" export --to gguf nowhere x.gguf
expect 1 "$lmquant" validate "$good" nowhere "$files/README.md"
for command in verify run bench tokenize; do
    expect 1 "$lmquant" $command nowhere
    says "nowhere: cannot open: No such file"
done
for command in inspect verify run bench tokenize; do
    expect 3 "$lmquant" $command "$files/bad-empty.safetensors"
    is_one_sentence "$command of an empty file"
done
expect 3 "$lmquant" validate "$good" "$files/bad-empty.safetensors" \
    "$files/README.md"
expect 3 "$lmquant" export --to gguf "$files/bad-empty.safetensors" x.gguf
[ -e x.gguf ] && fail "a refused export wrote a file"
if [ -w /dev/full ]; then
    for command in help "inspect $good" "convert --dry-run $good x.lmq"; do
        "$lmquant" $command > /dev/full 2> stderr
        status=$?
        [ $status -eq 1 ] || fail "$command > /dev/full: status $status"
    done
fi

# ---- Results ----

expect 0 "$lmquant" convert "$good" a.lmq
grep -q tokenizer stderr || fail "convert is silent about a bad tokenizer"
expect 0 "$lmquant" convert --layout=rows "$fable" fable.lmq
[ -s stderr ] && fail "convert speaks without need: $(cat stderr)"
expect 1 "$lmquant" convert "$good" a.lmq
says "a.lmq: exists already"
says "hint: -f (--force) replaces it"
expect 0 "$lmquant" convert -q --force "$good" a.lmq
[ -s stdout ] && fail "convert -q prints"
expect 0 "$lmquant" verify a.lmq
expect 0 "$lmquant" inspect -t a.lmq
awk 'length > 80' stdout | grep -q . && fail "inspect is too wide"
expect 0 "$lmquant" inspect --tensor blk.0.attn_q.weight --stats "$good"
grep -q '#####' stdout || fail "no histogram"
expect 0 "$lmquant" inspect --yaml a.lmq
expect 0 "$lmquant" diff "$good" "$good"
grep -q identical stdout || fail "a model differs from itself"

# json PATHS... < stdout
json() {
    "$is_json" "$@" < stdout || fail "stdout is not one JSON document"
}
expect 0 "$lmquant" convert --json -f "$good" a.lmq
json > /dev/null
[ "$(json dry_run totals.aliases tie.rule | tr '\n' ' ')" = \
    "false 1 configuration " ] || fail "convert --json is wrong"
expect 0 "$lmquant" inspect --json --tensors a.lmq
[ "$(json model.architecture)" = llama ] || fail "inspect --json is wrong"
expect 0 "$lmquant" inspect --json --tensor output_norm.weight --stats a.lmq
json tensors.0.stats.rms > /dev/null
expect 0 "$lmquant" verify --json a.lmq
[ "$(json intact)" = true ] || fail "verify --json is wrong"
expect 0 "$lmquant" diff --json "$good" a.lmq
json snr_db tensors.0.cosine > /dev/null
expect 3 "$lmquant" verify --json "$files/lmq/bad-flipped-value.lmq"
[ "$(json intact)" = false ] || fail "verify --json is wrong"
expect 0 "$lmquant" inspect --json "$files/good-escapes-in-name.safetensors"
json > /dev/null

# ---- Gates ----

expect 0 "$lmquant" diff --gate 'snr_db>=30' --gate 'missing<=0' "$good" a.lmq
expect 4 "$lmquant" diff --gate 'snr_db>=90' "$good" a.lmq
says "snr_db>=90 does not hold"
expect 4 "$lmquant" diff --json --gate 'snr_db>=30' --gate 'max_error<=0' \
    "$good" a.lmq
[ "$(json gates.0.held gates.1.held | tr '\n' ' ')" = "true false " ] ||
    fail "gates in JSON are wrong"
expect 0 "$lmquant" diff --gate 'identical>=1' "$good" "$good"

# Nothing that can be compared is no success.
expect 3 "$lmquant" diff "$good" "$fable"
says "shares no tensor"
expect 4 "$lmquant" diff -q --gate 'missing>=0' "$good" "$fable"
says "shares no tensor"
expect 3 "$lmquant" diff --json "$good" "$fable"
[ "$(json compared identical | tr '\n' ' ')" = "0 false " ] ||
    fail "nothing compared is not told in JSON"
awk 'length > 80' stdout | grep -q '"name"' && fail "diff is too wide"

# ---- What is not finite ----

expect 3 "$lmquant" convert "$files/bad-nan.safetensors" nan.lmq
says "bad-nan.safetensors: tensor 'w': NaN or infinity at element 4"
expect 0 "$lmquant" convert --on-nonfinite zero --json \
    "$files/bad-nan.safetensors" nan.lmq
[ "$(json totals.zeroed_elements)" = 1 ] || fail "zeroed elements"
expect 0 "$lmquant" verify nan.lmq

# ---- The exact size, the digest ----

for options in "" "--compress" "--layout=tiles" "--scales=f32 -g 32" \
    "--tie=never"; do
    expect 0 "$lmquant" convert --json --dry-run $options "$good" size.lmq
    planned=$(json totals.output_bytes)
    [ -e size.lmq ] && fail "--dry-run writes"
    expect 0 "$lmquant" convert $options "$good" size.lmq
    found=$(wc -c < size.lmq)
    [ "$planned" -eq "$found" ] ||
        fail "dry run says $planned, file has $found ($options)"
    rm -f size.lmq
done
expect 0 "$lmquant" inspect --json a.lmq
crc=$(json provenance.sources.0.crc32)
# gzip keeps the CRC-32 in its last eight bytes, the lowest byte first.
wanted=$(gzip -c "$good/model.safetensors" | tail -c 8 | od -An -tx1 |
    awk '{print $4 $3 $2 $1}')
[ "$crc" = "$wanted" ] || fail "CRC-32 is $crc, expected $wanted"

# ---- The same bits ----

expect 0 "$synth" --dim 192 --hidden 500 --layers 2 --heads 6 --kv-heads 2 \
    --vocab 3001 --dtype bf16 bits
for layout in rows tiles; do
    "$lmquant" convert -q --layout=$layout -j 1 bits 1.lmq
    for threads in 2 5; do
        expect 0 "$lmquant" convert -qf --layout=$layout -j $threads bits 2.lmq
        cmp 1.lmq 2.lmq || fail "$threads threads change the output"
    done
    for cpu in c avx2 avx512vnni amx; do
        LMQUANT_CPU=$cpu expect 0 "$lmquant" convert -qf --layout=$layout \
            bits 2.lmq
        cmp 1.lmq 2.lmq || fail "$cpu changes the output"
    done
    rm -f 1.lmq 2.lmq
done

# ---- Interruption ----

# 300 MB as a hole: cheap to make, not to convert.
expect 0 "$synth" --sparse --dim 2048 --hidden 8192 --layers 1 --heads 32 \
    --kv-heads 8 --vocab 8000 big
mkdir out

# Starts a conversion and waits until it has opened its output.
start() {
    "$lmquant" convert -j 1 "$@" big out/big.lmq > stdout 2> stderr &
    pid=$!
    if [ -d /proc/self/fd ]; then
        while kill -0 $pid 2> /dev/null &&
            ! ls -l /proc/$pid/fd 2> /dev/null | grep -q "$work/out"; do
            sleep 0.01
        done
    else
        sleep 0.1
    fi
}

# interrupted SIGNAL STATUS
interrupted() {
    start
    kill "-$1" $pid 2> /dev/null
    wait $pid
    status=$?
    if [ $status -eq 0 ]; then
        skip "the conversion was over before SIG$1 came"
    elif [ $status -ne "$2" ]; then
        fail "SIG$1: status $status, expected $2"
    elif [ -n "$(ls -A out)" ]; then
        fail "SIG$1 leaves $(ls -A out)"
    fi
    rm -f out/* out/.lmq*
}
interrupted TERM 143
says "interrupted"
is_one_sentence SIGTERM
interrupted INT 130
interrupted HUP 129
interrupted KILL 137 2> /dev/null # the shell tells who was killed
echo old > out/big.lmq
start -f
kill -TERM $pid 2> /dev/null
if ! wait $pid; then
    [ "$(cat out/big.lmq)" = old ] || fail "SIGTERM touches the old output"
    [ "$(ls -A out)" = big.lmq ] || fail "SIGTERM leaves $(ls -A out)"
fi
rm -f out/*

# ---- Memory ----

if has_sanitizer; then
    skip "memory is not measured under a sanitizer"
elif [ -x /usr/bin/time ]; then
    for layout in rows tiles; do
        /usr/bin/time -f %M -o rss "$lmquant" convert -q -j 8 \
            --layout=$layout big out/big.lmq || fail "a large conversion"
        kib=$(tail -n 1 rss)
        [ "$kib" -lt 262144 ] || fail "peak memory is $kib KiB ($layout)"
        rm -f out/big.lmq
    done
else
    skip "memory is not measured without /usr/bin/time"
fi

# ---- A full disk ----

mkdir disk
if [ "$(id -u)" -eq 0 ] &&
    mount -t tmpfs -o size=16m lmquant-test disk 2> /dev/null; then
    expect 1 "$lmquant" convert -q big disk/big.lmq
    says "disk/big.lmq: needs "
    is_one_sentence "full disk"
    [ -z "$(ls -A disk)" ] || fail "a full disk keeps $(ls -A disk)"
    umount disk
else
    skip "no right to mount a small disk"
fi
# A limit is found while writing, not before.
(
    ulimit -f 8192 && trap '' XFSZ &&
        "$lmquant" convert -q big out/big.lmq
) > stdout 2> stderr
status=$?
[ $status -eq 1 ] || fail "a limited file: status $status"
[ -z "$(ls -A out)" ] || fail "a limited file leaves $(ls -A out)"
finish
