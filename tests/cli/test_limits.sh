#!/bin/sh
#
# test_limits.sh - files that ask for much more than they hold, with a limit on
# memory and on processor time; and large ones that are honest.
set -u
. "${srcdir:-.}/tests/library.sh"

export OMP_NUM_THREADS=1
if has_sanitizer; then
    skip "sanitizers reserve more memory than the limits"
    exit 77
fi
# 512 MiB of addresses, 10 s of processor time: the libraries take 100 MiB.
limited() { (ulimit -v 524288 && ulimit -t 10 && exec "$@"); }

# refused COMMAND...: with 3 and one sentence.
refused() {
    expect 3 limited "$lmquant" "$@"
    is_one_sentence "$*"
}

# A small stack is enough, and one that cannot grow is no crash.
(ulimit -s 256 && exec "$lmquant" --version) > "$work/said" 2>&1 ||
    fail "with a stack of 256 KB: $(cat "$work/said")"
expect 1 sh -c "ulimit -s 128 && exec '$lmquant' --version"
says "the stack may have 128 KB, expected 256"

# repeated N TEXT: about N bytes of it.
repeated() { yes "$2" | tr -d '\n' | head -c "$1"; }

# ---- Headers of safetensors ----

# header NAME: standard input as a header, filled up to 8 MiB.
header() {
    cat >"$work/header"
    size=$(wc -c <"$work/header")
    printf '\000\000\200\000\000\000\000\000' >"$work/$1"
    cat "$work/header" >>"$work/$1"
    head -c $((8388608 - size)) /dev/zero | tr '\0' ' ' >>"$work/$1"
}

{ printf '{"a":['; repeated 6000000 '{},'; printf '{}]}'; } |
    header objects.safetensors
{ printf '{"a":['; repeated 6000000 '[],'; printf '[]]}'; } |
    header lists.safetensors
{ printf '{"__metadata__":{"a":['; repeated 6000000 '{},'; printf '{}]}}'; } |
    header metadata.safetensors
{ printf '{'; repeated 6000000 '"a":{},'; printf '"a":{}}'; } |
    header names.safetensors
for name in objects lists metadata names; do
    refused inspect "$work/$name.safetensors"
done
awk 'BEGIN {
    printf "{"
    for (i = 0; i < 60000; i++)
        printf "%s\"model.layers.%d.mlp.experts.%d.down_proj.weight\":" \
               "{\"dtype\":\"F32\",\"shape\":[1,1]," \
               "\"data_offsets\":[%d,%d]}", i ? "," : "", i / 128, i % 128,
               4 * i, 4 * i + 4
    printf "}" }' | header honest.safetensors
head -c 240000 /dev/zero >>"$work/honest.safetensors"
expect 0 limited "$lmquant" inspect -q "$work/honest.safetensors"

# ---- A benchmark, which reads as much memory as it may ----

expect 0 limited "$lmquant" bench -q -r 1 -j 1 -p 1 -n 1 \
    "$srcdir/tests/data/fable"
expect 1 sh -c 'ulimit -v 120000 && exec "$@"' sh "$lmquant" bench -q -r 1 \
    -j 1 -p 1 -n 1 "$srcdir/tests/data/fable"
says "measured with 64 MiB at least"

# ---- Texts ----

# 80 MB of one letter, as one file, as two behind each other and as a pipe.
repeated 80000000 a | gzip -c >"$work/a.gz"
cat "$work/a.gz" "$work/a.gz" >"$work/aa.gz"
for name in a aa; do
    for text in "$work/$name.gz" -; do
        expect 3 limited "$lmquant" validate -q "$fable" "$fable" "$text" \
            <"$work/$name.gz"
        says "is more than 64 times as large unpacked"
        is_one_sentence "$text"
    done
done
# A megabyte may come of anything.
repeated 1000000 'a ' | gzip -c >"$work/a.gz"
expect 0 limited "$lmquant" validate -q -c 64 --max-tokens 64 "$fable" \
    "$fable" "$work/a.gz"
# Short paragraphs take little each, and none of them fills a window.
{ yes 'the cat

' | head -n 1200000; head -c 900 "$fable/held-out-a.txt" | tr '\n' ' '
} >"$work/text"
(ulimit -t 3 && exec "$lmquant" validate -q -c 32 --score second-half \
    --split-documents "$fable" "$fable" "$work/text") \
    >"$work/said" 2>&1 || fail "short paragraphs: $(cat "$work/said")"
# What stands behind the tokens that were asked for is not tokenized.
cut='"behavior":"Isolated","pattern":{"Regex":"(?:a|a|b)+(?=c|d)"}'
sed 's/"pre_tokenizer": null/"pre_tokenizer":{"type":"Split",'"$cut}/" \
    "$fable/tokenizer.json" >"$work/tokenizer.json"
{ printf 'Once upon a time there was a fox.\n\n'; repeated 4000 ab
} >"$work/text"
for n in 8 800; do
    expect $((n > 8 ? 3 : 0)) limited "$lmquant" validate -q -c 32 \
        --split-documents --max-tokens $n --tokenizer "$work/tokenizer.json" \
        "$fable" "$fable" "$work/text"
done

# ---- Tokenizers ----

# tokenizer NORMALIZER: one of all letters, in $work/tokenizer.json.
tokenizer() {
    printf '{"added_tokens":[],"normalizer":%s,"pre_tokenizer":null,' "$1"
    printf '"model":{"type":"BPE","vocab":{"a":0,"b":1,"c":2},"merges":[]}}'
}

# replaces PATTERN: a normalizer.
replaces() { printf '{"type":"Replace","pattern":{"Regex":"%s"},' "$1"
             printf '"content":"b"}'; }

# splits PATTERN TEXT STATUS: a text through a pattern.
splits() {
    tokenizer "$(replaces "$1")" >"$work/tokenizer.json"
    printf '%s' "$2" >"$work/text"
    run limited "$lmquant" tokenize --ids "$work/tokenizer.json" <"$work/text"
    [ $status -eq "$3" ] || fail "'$1': exit $status: $(cat "$work/stderr")"
    [ $status -eq 0 ] || is_one_sentence "$1"
}

splits '(?:a?){5000}a{5000}' aaaa 3
splits '(?:(?:a+)+)+(?=c|d)' "$(repeated 4000 a)" 3
splits '(?:a|a|b)+(?=c|d)' "$(repeated 4000 ab)" 3
splits '(?:a|aa)+(?=c|d)' "$(repeated 4000 a)" 3
splits 'a+' "$(repeated 100000 a)" 0
splits 'a+(?=c|d)' "$(repeated 4000 a)" 0
splits '(?=a*+c|d)x|(?:a|b)' "$(repeated 4000 ab)" 0
# Where no code may be made, PCRE2 interprets: slower, and as limited.
interpreted() {
    limited env FAULT_CLASS=code FAULT_AT=1+ FAULT_ERRNO=1 FAULT_FD=9 \
        LD_PRELOAD="$top_builddir/tests/cli/fault_shim.so" "$@" 9>"$work/hit"
}
tokenizer "$(replaces '(?:a?){5000}a{5000}')" >"$work/tokenizer.json"
printf aaaa >"$work/text"
expect 3 interpreted "$lmquant" tokenize "$work/tokenizer.json" "$work/text"
is_one_sentence interpreted
[ -s "$work/hit" ] || fail "the pattern was not interpreted"

printf '%65536s' '' | tr ' ' a >"$work/text"
tokenizer '{"type":"Replace","pattern":{"String":"a"},"content":"'"$(
    repeated 250 b)"'"}' >"$work/tokenizer.json"
run limited "$lmquant" tokenize --ids "$work/tokenizer.json" <"$work/text"
[ $status -eq 3 ] || fail "growth: exit $status"
says "makes more than"
is_one_sentence growth

{ printf '{"model":{"type":"BPE","vocab":{},"merges":['
  repeated 6000000 '{},'; printf '{}]}}'; } >"$work/tokenizer.json"
run limited "$lmquant" tokenize --ids "$work/tokenizer.json" </dev/null
[ $status -eq 3 ] || fail "JSON: exit $status"

# ---- GGUF ----

# numbers N: as 8 bytes, little-endian, N below 2^32.
number() {
    printf "$(printf '\\%03o\\%03o\\%03o\\%03o' $(($1 % 256)) \
        $(($1 / 256 % 256)) $(($1 / 65536 % 256)) $(($1 / 16777216)))"
    printf '\000\000\000\000'
}
four() { number "$1" | head -c 4; }

# A list of a million empty texts.
{ printf 'GGUF'; four 3; number 0; number 1; number 1; printf a; four 9
  four 8; number 1000000; head -c 8000000 /dev/zero; } >"$work/texts.gguf"
run limited "$lmquant" inspect "$work/texts.gguf"
[ $status -eq 0 ] || [ $status -eq 3 ] || fail "texts.gguf: exit $status"

# ---- Copies ----

# An embedding and a head of float64, each copied as 300 MB: one would fit.
mkdir -p "$work/ends"
printf '{"model_type":"llama","hidden_size":64,"intermediate_size":64,
"num_hidden_layers":1,"num_attention_heads":1,"num_key_value_heads":1,
"vocab_size":1200000,"max_position_embeddings":64,"rms_norm_eps":1e-5,
"tie_word_embeddings":false,"architectures":["LlamaForCausalLM"]}' \
    >"$work/ends/config.json"
awk 'function add(name, rows, cols) {
    size = 8 * rows * (cols > 0 ? cols : 1)
    text = text sprintf("%s\"%s\":{\"dtype\":\"F64\",\"shape\":[%d%s]," \
        "\"data_offsets\":[%.0f,%.0f]}", text == "" ? "{" : ",", name, rows,
        cols > 0 ? "," cols : "", at, at + size)
    at += size
}
BEGIN {
    layer = "model.layers.0."
    n = split("self_attn.q self_attn.k self_attn.v self_attn.o mlp.gate " \
              "mlp.up mlp.down", names, " ")
    for (i = 1; i <= n; i++)
        add(layer names[i] "_proj.weight", 64, 64)
    add(layer "input_layernorm.weight", 64)
    add(layer "post_attention_layernorm.weight", 64)
    add("model.norm.weight", 64)
    add("model.embed_tokens.weight", 1200000, 64)
    add("lm_head.weight", 1200000, 64)
    printf "%-4096s", text "}" }' >"$work/header"
{ printf '\000\020\000\000\000\000\000\000'; cat "$work/header"; } \
    >"$work/ends/model.safetensors"
dd if=/dev/null of="$work/ends/model.safetensors" bs=1 \
    seek=$((8 + 4096 + 8 * (7 * 64 * 64 + 3 * 64 + 2 * 64 * 1200000))) \
    2>/dev/null
expect 1 limited "$lmquant" bench "$work/ends"
says "its weights cannot be used as they are stored, and 0.6 GB"
is_one_sentence ends

finish
