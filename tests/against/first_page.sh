#!/bin/sh
#
# first_page.sh - the figures of README's first page, measured here.
#
#   tests/against/first_page.sh BUILD MODEL TEXT LLAMA [FOLDER]
#
# MODEL is a folder of safetensors with its tokenizer, or a GGUF, which is
# unpacked to bfloat16 first; TEXT is judged over; LLAMA has llama-quantize and
# llama-perplexity. FOLDER (default: a temporary one) gets some 700 MB for a
# model of 135 million parameters. Seconds are those of the clock, then those
# of all processors, which a busy machine hardly changes; memory is the most
# that was resident: by GNU time. Both judge the second halves of windows of
# 512 tokens.
set -eu

[ $# -ge 4 ] || {
    sed -n '3,14s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
lmquant=$(cd "$1" && pwd)/lmquant
model=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
text=$(cd "$(dirname "$3")" && pwd)/$(basename "$3")
llama=$(cd "$4" && pwd)
if [ $# -ge 5 ]; then
    mkdir -p "$5"
    cd "$5"
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM
    cd "$work"
fi
threads=$(getconf _NPROCESSORS_ONLN)
windows="--ctx 512 --score second-half"

# measure NAME COMMAND...: what it says goes to NAME.log, what it took is shown.
measure() {
    name=$1
    shift
    /usr/bin/time -f '%e s (processor %U + %S), %M kB' \
        -o "$name.cost" "$@" > "$name.log" 2>&1 || {
        status=$?
        [ $status -eq 4 ] || {
            tail -n 20 "$name.log" >&2
            exit 1
        }
    }
    printf '  %-34s %s\n' "$name" "$(tail -n 1 "$name.cost")"
}

bytes() { wc -c < "$1" | tr -d ' '; }

sed -n 's/^model name[^:]*: /processor: /p' /proc/cpuinfo | head -n 1
echo "threads: $threads; load: $(cut -d ' ' -f 1 /proc/loadavg)"

# ---- The model ----

tokenizer=
if [ -f "$model" ]; then
    rm -rf model
    "$lmquant" export -qf --to safetensors --type bf16 "$model" model
    model=model
    tokenizer="--tokenizer model/tokenizer.gguf"
fi

# ---- lmquant ----

echo "lmquant"
# shellcheck disable=SC2086
measure convert "$lmquant" convert -f $tokenizer "$model" model.lmq
# shellcheck disable=SC2086
measure validate "$lmquant" validate $tokenizer $windows --gate 'kld.mean<=0.01' \
    "$model" model.lmq "$text"
cat validate.log
echo "  model.lmq: $(bytes model.lmq) bytes"

# ---- llama.cpp ----

echo "llama.cpp"
# shellcheck disable=SC2086
"$lmquant" export -qf --to gguf --type bf16 $tokenizer "$model" model.gguf
measure llama-quantize "$llama/llama-quantize" model.gguf q8_0.gguf Q8_0 \
    "$threads"
measure llama-perplexity-base "$llama/llama-perplexity" -m model.gguf \
    -f "$text" -c 512 -t "$threads" --kl-divergence-base base.kld
measure llama-perplexity-kld "$llama/llama-perplexity" -m q8_0.gguf -c 512 \
    -t "$threads" --kl-divergence-base base.kld --kl-divergence
grep -E '^(Mean +KLD|Same top p|Mean PPL\(Q\)/)' llama-perplexity-kld.log
echo "  q8_0.gguf: $(bytes q8_0.gguf) bytes; base.kld: $(bytes base.kld) bytes"

# ---- Both files, judged by lmquant: here, and as llama.cpp computes ----

# shellcheck disable=SC2086
measure validate-both "$lmquant" validate $tokenizer $windows "$model" model.lmq \
    q8_0.gguf --emulate q8_0 --text "$text"
cat validate-both.log
