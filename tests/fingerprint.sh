#!/bin/sh
#
# fingerprint.sh - the bits that a build computes: are they those of another
# compiler, of other options, of another machine?
#
#   tests/fingerprint.sh BUILD             print the fingerprint of a build
#   tests/fingerprint.sh BUILD OTHER...    compare others with the first
#
# BUILD is a folder where `make lmquant tests/make/make_family` was run, or a file that
# holds a fingerprint from elsewhere. What is in a folder runs under $RUNNER:
#
#   RUNNER='qemu-s390x -L SYSROOT' tests/fingerprint.sh BUILD > s390x.txt
#
# Lines are: checksum, size, what. Times, paths and the name of the machine
# are left out of JSON; its digits are not. Exit status 1: they differ.
set -u

top=$(cd "$(dirname "$0")/.." && pwd)
families="llama3 smollm3 gemma3 qwen3moe deepseek3 gpt2 falcon-40b phi3-long
    cohere-plus relu-alibi reglu-sinks-window"

[ $# -gt 0 ] || {
    sed -n '6,16s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
work=$(mktemp -d "${TMPDIR:-/tmp}/lmquant-fingerprint-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

die() {
    echo "fingerprint: $*" >&2
    exit 1
}

# ---- Of one build: in the folder $work/run, all names relative ----

lmquant() {
    ${RUNNER-} "$build/lmquant" "$@" < /dev/null ||
        die "$build: lmquant $* ended with $?"
}

# mark NAME FILE: one line.
mark() {
    [ -f "$2" ] || die "$build: $1: no file $2"
    printf '%s %s\n' "$(cksum < "$2")" "$1"
}

# json NAME COMMAND...: what it prints, less what may differ.
json() {
    name=$1
    shift
    lmquant "$@" > out.json || exit 1
    sed -E '/"(path|input|output|seconds|tokens_per_s|tokens_per_second|tool|instruction_set|threads)":/d' \
        out.json > kept.json
    mark "$name" kept.json
}

containers() {
    lmquant convert -q -f "$1" "$1.lmq" || exit 1
    mark "$1.lmq" "$1.lmq"
    lmquant convert -q -f --group-size 32 --scales f32 --layout rows \
        --method absmax "$1" "$1-rows.lmq" || exit 1
    mark "$1-rows.lmq" "$1-rows.lmq"
    json "$1: inspect" inspect --tensors --json "$1.lmq"
    json "$1: diff" diff --json "$1" "$1-rows.lmq"
}

# Each for itself: some families cannot be said in some formats.
exports() {
    for to in gguf/f32 gguf/q8_0 safetensors/f32 safetensors/bf16 llama2c/; do
        out=out.${to%/*} type=${to#*/}
        type=${type:+--type=$type}
        rm -rf "$out"
        ${RUNNER-} "$build/lmquant" export -q -f --to "${to%/*}" \
            $type "$1.lmq" "$out" > /dev/null 2>&1 < /dev/null
        status=$?
        for file in "$out" "$out"/*; do
            [ ! -f "$file" ] || mark "$1: export $to ${file#"$out"}" "$file"
        done
        echo "status $status $1: export $to"
    done
}

figures() {
    model=$1
    shift
    json "$model: validate" validate -q --json --floor "$@"
    json "$model: validate q8" validate -q --json --activations q8 --kv q8 "$@"
    json "$model: validate f32" validate -q --json --activations f32 --kv f16 \
        "$@"
}

fable() {
    cp -R "$top/tests/data/fable" fable
    containers fable
    exports fable
    figures fable -c 128 --max-tokens 500 --split-documents fable fable.lmq \
        fable/held-out-b.txt
    json "fable: attribution" validate -q --json -a -c 128 --max-tokens 200 \
        fable fable.lmq fable/held-out-b.txt
    json "fable: likeliest" run --json --temp 0 -n 120 fable.lmq \
        "Once upon a time"
    json "fable: drawn" run --json --seed 7 -n 120 fable.lmq "The cat"
    json "fable: float32" run --json --temp 0 -n 60 fable "The fox"
    ${RUNNER-} "$build/lmquant" tokenize --ids fable < fable/held-out-b.txt \
        > ids || die "$build: tokenize ended with $?"
    mark "fable: tokens" ids
}

family() {
    ${RUNNER-} "$build/tests/make/make_family" --tokens 40 "$1" "$1" > /dev/null ||
        die "$build: make_family $1"
    mark "$1: tokens" "$1/tokens.bin"
    mv "$1/tokens.bin" tokens.bin
    rm "$1/logits.bin" # of the oracle, with the sines of the C library
    for file in "$1"/*; do
        mark "$file" "$file"
    done
    containers "$1"
    exports "$1"
    figures "$1" --tokens tokens.bin -c 20 "$1" "$1.lmq"
}

# fingerprint BUILD: to stdout.
fingerprint() {
    [ -d "$1" ] || {
        cat "$1"
        return
    }
    build=$(cd "$1" && pwd)
    for program in lmquant tests/make/make_family; do
        [ -x "$build/$program" ] || die "$1 has no $program: make $program"
    done
    rm -rf "$work/run"
    mkdir "$work/run"
    cd "$work/run" || exit 1
    fable
    for name in $families; do
        family "$name"
    done
}

# ---- Comparing ----

[ $# -gt 1 ] || {
    fingerprint "$1"
    exit
}
(fingerprint "$1") > "$work/first" || exit 1
first=$1
shift
status=0
for other in "$@"; do
    (fingerprint "$other") > "$work/other" || exit 1
    if diff "$work/first" "$work/other" > "$work/diff"; then
        echo "$other: $(wc -l < "$work/other") lines, the same bits as $first"
    else
        echo "$other: other bits than $first:"
        cat "$work/diff"
        status=1
    fi
done
exit $status
