#!/bin/sh
#
# test_shown.sh - what commands show when they are asked for more than usual,
# or meet what is rare: parts of a divergence, pieces of characters, names that
# are too long, two models that have little in common.
set -u
. "${srcdir:-.}/tests/library.sh"

export OMP_NUM_THREADS=1
expect 0 "$lmquant" convert -q "$fable" "$work/fable.lmq"
fable_lmq=$work/fable.lmq
printf 'Once upon a time there was a fox.\n' > "$work/text"

# shows TEXT: stdout has it.
shows() {
    grep -qF -- "$1" "$work/stdout" || {
        fail "stdout does not show '$1':"
        sed 's/^/    /' "$work/stdout"
    }
}

# ---- tokenize ----

# expect, with standard input from a file.
expect_from() {
    input=$1 wanted=$2
    shift 2
    "$@" < "$input" > "$work/stdout" 2> "$work/stderr"
    status=$?
    [ $status -eq "$wanted" ] || fail "exit status $status: $*"
}

printf '1 2 \033[2Jx' > "$work/ids"
expect_from "$work/ids" 3 "$lmquant" tokenize --decode "$fable_lmq" -
says "'\\x1b[2Jx' is no token id"
is_one_sentence "tokenize --decode"
for ids in '7 -1' '99999999999' '1,2,x' +5 -0 '+' '1 - 2'; do
    echo "$ids" > "$work/ids"
    expect_from "$work/ids" 3 "$lmquant" tokenize --decode "$fable_lmq"
    says "is no token id"
done
printf '1 2\0 3' > "$work/ids"
expect_from "$work/ids" 3 "$lmquant" tokenize --decode "$fable_lmq"
says "is no token id"
echo 99999 > "$work/ids"
expect_from "$work/ids" 3 "$lmquant" tokenize --decode "$fable_lmq"
says "token id 99999 is out of range, the vocabulary has 512"
echo 1 338 > "$work/ids"
expect_from "$work/ids" 0 "$lmquant" tokenize --decode "$fable_lmq"
[ "$(cat "$work/stdout")" = On ] || fail "--decode: $(cat "$work/stdout")"
expect_from "$work/ids" 0 "$lmquant" tokenize --decode --special "$fable_lmq"
[ "$(cat "$work/stdout")" = '<s> On' ] ||
    fail "--decode --special: $(cat "$work/stdout")"
expect 2 "$lmquant" tokenize --ids --decode "$fable_lmq" "$work/text"
says "exclude each other"
expect 2 "$lmquant" tokenize --decode --no-bos "$fable_lmq" "$work/text"
says "--no-bos does not go with --decode"
: > "$work/none"
expect_from "$work/none" 0 "$lmquant" tokenize --yaml --no-bos "$fable_lmq"
shows "count: 0"

# Characters that a terminal obeys, or YAML, and pieces of others.
cat > "$work/odd.json" <<'END'
{"version": "1.0", "model": {"type": "BPE", "byte_fallback": true,
 "vocab": {"a": 0, "\u0085": 1, "\u2028": 2, "\u00e9": 3, "\u20ac": 4,
 "\"": 5, "\\": 6, "\n": 7, "\u007f": 8, "<0xF0>": 9, "<0x9F>": 10,
 "<0xA6>": 11, "<0x8A>": 12}, "merges": []}, "pre_tokenizer": null,
 "normalizer": null, "decoder": null, "added_tokens": []}
END
printf 'a\302\205\342\200\250\303\251\342\202\254"\\\n\177\360\237\246\212' \
    > "$work/odd"
expect 0 "$lmquant" tokenize "$work/odd.json" "$work/odd"
for piece in '"\u0085"' '"\u2028"' '"\""' '"\\"' '"\n"' '"\u007f"' \
    '"<0xF0>"' "\"$(printf '\303\251')\"" "\"$(printf '\342\202\254')\""; do
    shows "$piece"
done
expect 0 "$lmquant" tokenize --json "$work/odd.json" "$work/odd"
[ "$("$is_json" tokens.2.id count < "$work/stdout" | tr '\n' ' ')" = \
    "2 13 " ] || fail "tokenize --json"

# ---- run ----

# Rows of the embedding behind the tokenizer's last token are never drawn.
"$top_builddir/tests/build/synth" --dim 48 --hidden 64 --heads 6 --kv-heads 2 \
    --layers 1 --vocab 700 --untied "$work/padded" || fail "synth"
expect 0 "$lmquant" run -q --tokenizer "$fable/tokenizer.json" --seed 1 \
    -t 3 -n 200 --ignore-eos "$work/padded" Once
expect 0 "$lmquant" run --ids -t 0 -n 5 "$fable_lmq" Once
[ "$(wc -w < "$work/stdout")" -eq 5 ] || fail "run --ids: $(cat "$work/stdout")"
expect 0 "$lmquant" run -t 0 -n 3 --ctx 8 "$fable_lmq" Once
expect 1 "$lmquant" run -n 1 nowhere Once
expect 2 "$lmquant" run -n 4 --ctx 3 "$fable_lmq" 'Once upon a time there was'

# The prompt is what was said already.
prompt='Once upon a time there was a fox. Once upon a'
expect 0 "$lmquant" run -q -t 0 -n 1 "$fable_lmq" "$prompt"
cp "$work/stdout" "$work/again"
for penalty in repeat-penalty frequency-penalty presence-penalty; do
    expect 0 "$lmquant" run -q -t 0 -n 1 --$penalty 100 "$fable_lmq" "$prompt"
    cmp -s "$work/stdout" "$work/again" && fail "--$penalty forgets the prompt"
done

# ---- validate ----

expect 0 "$lmquant" validate --attribute --ctx 32 --max-tokens 40 "$fable" \
    "$fable_lmq" "$fable/held-out-b.txt"
shows "where the divergence comes from"
shows "weights "
shows "less divergence with this part, restored to fp32:"
shows "less divergence with this layer, restored to fp32:"
grep -q '^  weights.*keys and values' "$work/stdout" &&
    fail "keys and values of float32 have a share"
expect 0 "$lmquant" validate --attribute --kv q8 --ctx 32 --max-tokens 40 \
    "$fable" "$fable_lmq" "$fable/held-out-b.txt"
grep -q '^  weights.*, keys and values [-0-9.]* %$' "$work/stdout" ||
    fail "keys and values of 8 bits have no share"
# Little below 0 is 0, of each tensor and of each model.
expect 0 "$lmquant" validate -v --attribute=tensor --ctx 32 --max-tokens 200 \
    "$fable" "$fable_lmq" "$fable/held-out-b.txt"
"$lmquant" validate -a --ctx 64 --max-tokens 1000 -f -o "$work/own.html" \
    "$fable" "$fable_lmq" "$fable_lmq" --text "$fable/held-out-b.txt" \
    >> "$work/stdout" 2> "$work/stderr" || fail "validate -a of two models"
shows "attn_k         0.0 %"
shows " 100.0 %    0.0 %"
grep -n -- '-0\.0 %' "$work/stdout" && fail "a share is -0.0 %"
grep -q -- '-0\.0 %' "$work/own.html" && fail "a share is -0.0 % on the page"
# All of a divergence is 100 %.
expect 0 "$lmquant" convert -q --keep '*' --set 'blk.1.ffn_down.weight=q4' \
    "$fable" "$work/one.lmq"
expect 0 "$lmquant" validate --attribute=tensor --max-tokens 100 -f \
    -o "$work/own.html" "$fable" "$work/one.lmq" "$fable/held-out-b.txt"
grep -q "transparent)'>100<" "$work/own.html" || fail "no cell has 100 %"
# Worse than a guess, by more than a number can say.
mkdir "$work/loud"
cp "$fable"/*.safetensors "$fable"/tokenizer*.json "$work/loud"
sed 's/LlamaForCausalLM/GraniteForCausalLM/
    s/"model_type": *"llama"/"logits_scaling": 1e-5, "model_type": "granite"/' \
    "$fable/config.json" > "$work/loud/config.json"
expect 0 "$lmquant" validate --max-tokens 100 "$work/loud" "$fable" \
    "$fable/held-out-b.txt"
says "to guess: its perplexity is too large to be a number; is this"
expect 0 "$synth" --dim 32 --hidden 32 --layers 24 --heads 2 --kv-heads 2 \
    --vocab 512 "$work/deep"
cp "$fable/tokenizer.json" "$fable/tokenizer_config.json" "$work/deep/"
expect 0 "$lmquant" validate --ctx 16 --max-tokens 16 "$work/deep" \
    "$work/deep" "$work/text"
few=$(wc -l < "$work/stdout")
expect 0 "$lmquant" validate -v --ctx 16 --max-tokens 16 "$work/deep" \
    "$work/deep" "$work/text"
[ "$(wc -l < "$work/stdout")" -gt "$few" ] || fail "-v shows no more layers"
mkdir "$work/page.html"
expect 1 "$lmquant" validate -q -f --report "$work/page.html" "$fable" \
    "$fable_lmq" "$work/text"
is_one_sentence "a page that is a folder"
expect 1 "$lmquant" validate "$fable" nowhere "$work/text"

# ---- diff ----

expect 0 "$lmquant" diff "$files/good-folder" "$files/good-folder"
shows "identical"
cp "$fable/fable.bin" "$work/alone.bin"
expect 0 "$lmquant" diff "$fable_lmq" "$work/alone.bin"
shows "tokenizer: only in the first"

# ---- export ----

expect 2 "$lmquant" export "$fable_lmq" "$work/x.gguf"
says "--to says in which format"
expect 0 "$lmquant" export --to llama2c "$fable_lmq" "$work/x.bin"
shows "in groups of"

# ---- Long names ----

name=model.$(printf 'very_long_name_%.0s' 1 2 3 4 5 6).weight
header="{\"$name\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}"
{
    printf "\\$(printf %o ${#header})\\000\\000\\000\\000\\000\\000\\000"
    printf '%s' "$header"
    printf '\000\000\200\077\000\000\000\100'
} > "$work/long.safetensors"
expect 0 "$lmquant" inspect --tensors "$work/long.safetensors"
shows "..."
awk 'length > 80' "$work/stdout" | grep -q . && fail "a long name is not cut"

# ---- Summaries ----

cd "$work" || exit 99
cp -r "$fable" fable
# summary COMMAND...: what it prints for people is what comes as input, but for
# times and exact sizes.
summary() {
    cat > wanted
    expect 0 "$lmquant" "$@"
    sed 's/^  [0-9.]* s, .* of input per second$/  TIME/
        s/, [0-9.]* s$/, TIME/; s/([0-9]* bytes)/(BYTES)/
        /^  made by  *lmquant [0-9]/d' stdout |
        diff wanted - > differences ||
        fail "$* says something else: $(cat differences)"
}
summary convert fable m.lmq << 'END'
fable (safetensors, 379 thousand parameters)
  39 tensors: 29 quantized in groups of 32, 9 kept, 1 alias
  the head is the embedding (found by configuration)
  signal to noise 46.2 dB, worst 45.4 dB (blk.3.ffn_down.weight)
m.lmq
  1.52 MB -> 453 kB (BYTES), 8.90 bits per weight
  TIME
END
shows " ($(wc -c < m.lmq) bytes)"
summary convert -e q4 --keep output --keep token_embd --keep 'blk.0.*' \
    --set 'blk.1.*=bf16' --set 'blk.2.*=q8,group=64' --tie never --parts 3 \
    fable x.lmq << 'END'
fable (safetensors, 428 thousand parameters)
  39 tensors: 14 quantized in groups of 32 (7), 64 (7), 25 kept (7 as bf16)
  signal to noise 24.3 dB, worst 20.9 dB (blk.3.ffn_down.weight)
x.lmq in 3 files
  1.52 MB -> 1.09 MB (BYTES), 19.67 bits per weight
  TIME
END
summary convert -f m.lmq again.lmq << 'END'
m.lmq (lmq, 379 thousand parameters)
  39 tensors: 29 quantized in groups of 32 (29 as they were), 9 kept, 1 alias
  the head is the embedding (found by configuration)
again.lmq
  453 kB -> 453 kB (BYTES), 8.90 bits per weight
  TIME
END
summary convert -v --on-nonfinite=zero "$files/bad-nan.safetensors" nan.lmq \
    << END
$files/bad-nan.safetensors (safetensors, 6 parameters)
  1 tensor: 1 quantized in groups of 32, 0 kept
  signal to noise 84.3 dB, worst 84.3 dB (w)
  1 element was not finite and became 0
nan.lmq
  89 bytes -> 1.81 kB (BYTES), 725.33 bits per weight
  TIME

tensor                               from  to       bits max error  SNR dB
w                                    f32   q8/32  725.33   6.1e-05    84.3
END
expect 0 "$lmquant" convert --dry-run fable never.lmq
shows 'never.lmq (not written: --dry-run)'
shows 'blk.0.attn_norm.weight               f32   f32     32.00'
grep -q 'per second' stdout && fail "a dry run took time"
expect 0 "$lmquant" convert --part 2/3 fable p.lmq
shows 'part 2 of 3: p-00002-of-00003.lmq, 147 kB; lmquant seal makes a set'
summary export --to gguf m.lmq m.gguf << 'END'
m.lmq (lmq, 379 thousand parameters)
m.gguf (gguf, q8_0): the same weights, bit for bit
  m.gguf                                           645 kB
  453 kB -> 645 kB, TIME
END
expect 0 "$lmquant" export --to safetensors --type f16 m.lmq st
shows 'st (safetensors, f16): weights were rounded'
summary join x-00002-of-00003.lmq x.lmq << 'END'
x-00002-of-00003.lmq: 3 files, 39 tensors
x.lmq
  x.lmq                                           1.08 MB
  1 file, 1.08 MB (BYTES), TIME
END
mkdir set
summary split --shard-size 300K m.lmq set << 'END'
m.lmq: 1 file, 39 tensors
set/m.lmq
  2 files, 454 kB (BYTES), TIME
END
expect 0 "$lmquant" split -f -v --shard-size 300K m.lmq set
shows '  m-00002-of-00002.lmq  '
rm set/m-00002-of-00002.lmq
expect 3 "$lmquant" verify set
shows 'm-00002-of-00002.lmq is missing'
summary diff m.lmq m.lmq << 'END'
38 of 38 tensors are identical
description: the same
tokenizer: the same
the checkpoints are identical
END
expect 0 "$lmquant" convert -q -f --keep '*' --set 'blk.1.ffn_down=q8' \
    --rope-theta 500 fable one.lmq
summary diff fable one.lmq << 'END'
tensor, the worst first                 max error  rms error  SNR dB     cosine
blk.1.ffn_down.weight                     0.00247   0.000574    46.5  0.9999889
37 of 38 tensors are identical
all of them                               0.00247   0.000129    61.6  0.9999997
description: rope_theta is 10000 in the first, 500 in the second
tokenizer: the same
END
digests=$files/lmq/good-digests.lmq
"$lmquant" verify "$digests" | grep -q 'not checked' ||
    for digest in root content; do
        "$lmquant" verify --json "$digests" > said
        expect 0 "$lmquant" verify --against \
            "$("$is_json" digests.$digest < said | tr -d '"')" "$digests"
        [ "$(sed -n 's/^  \([a-z]*\) .* (as asked for)$/\1/p' stdout)" = \
            $digest ] || fail "$digest was asked for: $(cat stdout)"
    done
if "$lmquant" convert -q --digests fable d.lmq 2> said; then
    expect 0 "$lmquant" inspect d.lmq
    grep -q '^  digests  *root    sha256:[0-9a-f]\{64\}$' stdout ||
        fail "--digests leaves none: $(cat stdout)"
fi
summary inspect m.lmq << 'END'
m.lmq
  format           lmq, 1 file, 453 kB
  parameters       379 thousand in 39 tensors, 8.90 bits each
  tokenizer        tokenizer.json, tokenizer_config.json, generation_config.json
                   Hugging Face, 512 tokens
model: llama
  layers           4
  dim              96
  hidden dim       200
  heads            6
  kv heads         2
  head dim         16
  vocabulary       512
  context          256
  norm epsilon     1e-05
  rope theta       10000
  head             the embedding
container: version 1.0
  quantization     groups of 32, f16 scales, search, tiles
  tied head        found by configuration
  made from        model.safetensors (1.52 MB, CRC-32 b2222372)
END
finish
