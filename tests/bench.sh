#!/bin/sh
#
# bench.sh - the whole table: what each step takes, and what part of the
# machine's limit that is.
#
#     tests/bench.sh BUILD [OUT.json]
#
# BUILD holds lmquant and tests/build/synth; make bench gives it. The model is
# made for it, BENCH_SHAPE (llama-1b) of random weights in bfloat16, in
# BENCH_FOLDER (a new one below TMPDIR), which takes three times its size.
# BENCH_ROUNDS (3): the median of so many; what is compared is run in turn.
# Limits are measured in the same run as what is held against them. A busy
# machine lowers all of it, and nothing here can tell.
set -eu

[ $# -ge 1 ] || {
    sed -n '3,14s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
build=$(cd "$1" && pwd)
json=${2-bench.json}
shape=${BENCH_SHAPE-llama-1b}
rounds=${BENCH_ROUNDS-3}
lmquant=$build/lmquant
if [ -n "${BENCH_FOLDER-}" ]; then
    work=$BENCH_FOLDER
    mkdir -p "$work"
else
    work=$(mktemp -d "${TMPDIR-/tmp}/lmquant-bench.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM
fi
rows=$work/rows
: >"$rows"

say() { printf '%s\n' "$*"; }

# ---- Time ----

# Seconds that a command takes, to the millisecond.
seconds() {
    from=$(date +%s.%N)
    "$@" >/dev/null 2>&1
    to=$(date +%s.%N)
    echo "$from $to" | awk '{ printf "%.3f\n", $2 - $1 }'
}

median() { sort -n | awk '{ x[NR] = $1 } END { print x[int(NR / 2) + 1] }'; }

# row NAME FIGURE UNIT LIMIT PART [SECONDS]
row() {
    printf '%-36s %10s %-9s %10s %5s %%\n' "$1" "$2" "$3" "$4" "$5"
    printf '{"name": "%s", "figure": %s, "unit": "%s", "limit": %s, "percent": %s},\n' \
        "$1" "$2" "$3" "$4" "$5" >>"$rows"
}

# ---- Conversion, against reading and writing the same bytes ----

# What a conversion reads, and what it writes.
copy() {
    cat "$work"/src/*.safetensors >/dev/null
    cat "$work/q8.lmq" >"$work/copy"
}

by_search() { "$lmquant" convert -q -f "$work/src" "$work/search.lmq"; }
by_absmax() {
    "$lmquant" convert -q -f --method absmax "$work/src" "$work/absmax.lmq"
}

# Nobody waits for what others have still to write.
fresh() {
    rm -f "$work/copy" "$work/search.lmq" "$work/absmax.lmq"
    sync
    seconds "$@"
}

bench_conversion() {
    rm -f "$work/times".*
    "$lmquant" convert -q -f "$work/src" "$work/q8.lmq"
    for _ in $(seq "$rounds"); do
        fresh copy >>"$work/times.copy"
        fresh by_absmax >>"$work/times.absmax"
        fresh by_search >>"$work/times.search"
    done
    limit=$(median <"$work/times.copy")
    for method in absmax search; do
        took=$(median <"$work/times.$method")
        row "convert, $method" "$took" s "$limit" "$(echo "$limit $took" |
            awk '{ printf "%.0f", 100 * $1 / $2 }')"
    done
    rm -f "$work/copy" "$work/search.lmq" "$work/absmax.lmq"
}

# ---- Evaluation ----

# One number of a report: the key within its object.
number_of() {
    awk -v object="$1" -v key="$2" '
        match($0, /"[a-z0-9_]+": [{]/) { split($0, part, "\""); at = part[2] }
        index($0, "\"" key "\": ") && at == object {
            sub(/.*": /, ""); sub(/,.*/, ""); print; exit }' "$work/report"
}

scaled() { awk -v x="$1" -v by="$2" 'BEGIN { printf "%.1f", x * by }'; }

# bench_prefill NAME FILE LIMIT ARGUMENT...
bench_prefill() {
    name=$1 file=$2 limit=$3
    shift 3
    "$lmquant" bench -q -r "$rounds" --json "$@" "$file" >"$work/report"
    part=$(scaled "$(number_of prefill fraction_with_attention)" 100)
    row "$name, prefill" "$(scaled "$(number_of prefill tokens_per_s)" 1)" \
        tokens/s "$(scaled "$(number_of limits "$limit")" 1e-9)" "$part"
}

decode_row() {
    part=$(scaled "$(number_of decode fraction)" 100)
    row "$1, decode" "$(scaled "$(number_of decode tokens_per_s)" 1)" \
        tokens/s "$(scaled "$(number_of limits read_bytes_per_s)" 1e-9)" "$part"
}

# The same arguments; decode too, also as a part of reading the same weights.
bench_both() {
    bench_prefill "$@"
    decode_row "$1"
    part=$(scaled "$(number_of decode fraction_of_weights)" 100)
    limit=$(number_of limits read_weights_bytes_per_s)
    row "$1, of the file" "$(scaled "$(number_of decode tokens_per_s)" 1)" \
        tokens/s "$(scaled "$limit" 1e-9)" "$part"
}

# Weights in large pages, as reading them into memory gives them.
bench_in_memory() {
    name=$1 file=$2
    shift 2
    "$lmquant" bench -q -r "$rounds" --json --no-mmap -p 1 "$@" "$file" \
        >"$work/report"
    decode_row "$name, in memory"
}

# Read from the disk, as a file is that was not written just now: the system
# keeps it in larger pages then.
read_again() {
    dd of="$1" oflag=nocache conv=notrunc,fdatasync count=0 2>/dev/null || :
    cat "$1" >/dev/null
}

bench_evaluation() {
    read_again "$work/q8.lmq"
    read_again "$work/q4.lmq"
    for n in 1 $(getconf _NPROCESSORS_ONLN); do
        threads="$n threads"
        [ "$n" -gt 1 ] || threads="1 thread"
        for mode in q16 q8; do
            bench_both "int8, $mode, $threads" "$work/q8.lmq" \
                int8_ops_per_s -j "$n" --activations $mode
            bench_in_memory "int8, $mode, $threads" "$work/q8.lmq" -j "$n" \
                --activations $mode
        done
        bench_both "4 bits, $threads" "$work/q4.lmq" int8_ops_per_s -j "$n"
        bench_in_memory "4 bits, $threads" "$work/q4.lmq" -j "$n"
        bench_both "float, $threads" "$work/src" fp32_flops_per_s -j "$n" \
            -p 128 -n 32
    done
    for tokens in 64 2048; do
        bench_prefill "int8, $tokens at once" "$work/q8.lmq" int8_ops_per_s \
            --activations q8 -p "$tokens" -n 1
    done
    for kv in f32 q8; do
        bench_both "int8, behind 4096, kv $kv" "$work/q8.lmq" int8_ops_per_s \
            --activations q8 -p 128 -n 32 -d 4096 --kv $kv
    done
}

# ---- All of it ----

say "$("$lmquant" --version | head -n 1), $(getconf _NPROCESSORS_ONLN) cores:" \
    "$(sed -n 's/^model name.*: //p' /proc/cpuinfo 2>/dev/null | head -n 1)"
say "$shape in bfloat16; limits: s, Gop/s or GFLOP/s, GB/s"
printf '%-36s %10s %-9s %10s %7s\n' what figure unit limit part
"$build/tests/build/synth" --shape "$shape" --dtype bf16 "$work/src"
bench_conversion
"$lmquant" convert -q -f --encoding q4 "$work/src" "$work/q4.lmq"
bench_evaluation
{
    printf '{"shape": "%s", "rows": [\n' "$shape"
    sed '$s/,$//' "$rows"
    printf ']}\n'
} >"$json"
say "the same as JSON: $json"
