#!/bin/sh
#
# test_folders.sh - folders as people have them, and what convert says of
# trouble to come.
set -u
. "${srcdir:-.}/tests/library.sh"

library=$srcdir/tests/library.sh
cd "$work" || exit 99
export OMP_NUM_THREADS=1

copy_model() {
    mkdir "$1"
    for file in config.json model.safetensors tokenizer.json \
        tokenizer_config.json generation_config.json; do
        cp "$fable/$file" "$1"
    done
}

# rename FOLDER OLD NEW: a tensor; NEW is not longer.
rename() {
    fill=$(printf "%$((${#2} - ${#3}))s" "")
    old=$(echo "$2" | sed 's/\./\\./g')
    LC_ALL=C sed "s/\"$old\"/\"$3\"$fill/" "$1/model.safetensors" > renamed
    cmp -s renamed "$1/model.safetensors" && fail "$1 has no tensor $2"
    mv renamed "$1/model.safetensors"
}
copy_model model
expect 0 "$lmquant" convert -q model model.lmq

# ---- Ties go both ways ----

copy_model head
rename head model.embed_tokens.weight lm_head.weight
expect 0 "$lmquant" convert -q head head.lmq
expect 0 "$lmquant" diff --gate 'identical>=1' model head
expect 0 "$lmquant" diff --gate 'identical>=1' model.lmq head.lmq
expect 0 "$lmquant" run -q -n 8 --temp 0 model "Once"
cp stdout wanted
for checkpoint in head head.lmq; do
    expect 0 "$lmquant" run -q -n 8 --temp 0 $checkpoint "Once"
    [ $checkpoint = head.lmq ] || cmp -s stdout wanted ||
        fail "a head alone gives other text"
done

# ---- Only containers are verified ----

expect 3 "$lmquant" verify model
says "is a checkpoint of another format"
mkdir empty
expect 3 "$lmquant" verify empty
says "the folder holds no .lmq container"

# ---- An adapter is no model, and belongs to one ----

copy_model adapted
echo '{"peft_type": "LORA"}' > adapted/adapter_config.json
expect 3 "$lmquant" convert adapted adapted.lmq
says "not merged into the weights"
expect 3 "$lmquant" run -n 1 adapted "Once"
expect 0 "$lmquant" inspect adapted/model.safetensors
copy_model wrapped
rename wrapped model.layers.0.self_attn.q_proj.weight m.q.base_layer.weight
expect 3 "$lmquant" convert wrapped wrapped.lmq
says "is of an adapter (LoRA) that is not merged"
mkdir over
cp adapted/adapter_config.json over
expect 0 "$lmquant" export -f --to safetensors model.lmq over
grep -q "adapter_config.json was in the folder before and stays" stderr ||
    fail "export does not tell of the adapter: $(cat stderr)"

# ---- A link that leads nowhere is not the same as no file ----

copy_model linked
rm linked/config.json
ln -s nowhere linked/config.json
expect 1 "$lmquant" inspect linked
says "is a link to what is not there"

# ---- An index that is left over ----

expect 0 "$lmquant" export -q --to safetensors --shard-size 100K model shards
cp model/model.safetensors shards
expect 0 "$lmquant" inspect shards
grep -q "^note: the files that model.safetensors.index.json names are read" \
    stderr || fail "inspect does not tell of the other model: $(cat stderr)"
rm shards/model-*
expect 3 "$lmquant" inspect shards
grep -q "is missing, but the index" stderr &&
    grep -q "^hint: if the index is left over" stderr ||
    fail "inspect does not doubt the index: $(cat stderr)"
rm shards/model.safetensors.index.json
expect 0 "$lmquant" inspect shards
[ -s stderr ] && fail "inspect speaks without need: $(cat stderr)"

# ---- A download that broke off ----

copy_model void
: > void/config.json
expect 3 "$lmquant" inspect void
says "void/config.json: is empty"

# ---- Tables of experts ----

# Their numbers name experts, which no type may round.
expect 0 "$top_builddir/tests/make/make_family" deepseek4 named
expect 0 "$lmquant" convert --set '*=bf16' named named.lmq
expect 0 "$lmquant" inspect --tensors named.lmq
grep -q 'tid2eid.* f32' stdout || fail "a table is rounded: $(grep tid2 stdout)"
expect 0 "$lmquant" export --to safetensors --type bf16 named.lmq rounded
expect 0 "$lmquant" inspect --tensors rounded
grep -q 'tid2eid.* f32' stdout || fail "a table is rounded: $(grep tid2 stdout)"
# What run refuses is not written: a token that goes to an expert twice, and
# integers that name no expert.
weights=named/model.safetensors
head=$(($(od -An -tu8 -N8 $weights) + 8))
at=$(head -c $head $weights |
    sed -n 's/.*tid2eid":{[^}]*offsets":\[\([0-9]*\),.*/\1/p')
cp $weights whole
dd if=whole of=$weights bs=1 skip=$((head + at + 4)) seek=$((head + at)) \
    count=4 conv=notrunc 2> /dev/null
expect 3 "$lmquant" convert named twice.lmq
says "at element 1, expected another one of 6 experts for token 0"
expect 3 "$lmquant" export --to gguf named twice.gguf
says "at element 1, expected another one of 6 experts for token 0"
LC_ALL=C sed 's/\(tid2eid":{"dtype":"\)F32/\1I32/' whole > $weights
expect 3 "$lmquant" convert named none.lmq
says "expected another one of 6 experts for token 0"
cp whole $weights
# Index tensors, and no index in the description.
sed 's/"index_topk": *[0-9]*/"index_topk": 0/' named/config.json > edited
mv edited named/config.json
expect 0 "$lmquant" inspect named
expect 3 "$lmquant" run named x
says "'index_topk' 0 is not understood"

# ---- An architecture that is not known ----

copy_model unknown
sed -e 's/LlamaForCausalLM/NovelForCausalLM/' -e 's/"llama"/"novel"/' \
    "$fable/config.json" > unknown/config.json
# Two tensors of one role, and one of a role that has a layer too many.
rename unknown model.layers.0.input_layernorm.weight blk.0.ffn_norm.weight
rename unknown model.layers.1.input_layernorm.weight blk.77.ffn_norm.weight
expect 0 "$lmquant" convert unknown unknown.lmq
grep -q "^note: cannot be run: the architecture 'NovelForCausalLM'" stderr ||
    fail "convert does not say that it cannot be run: $(cat stderr)"
mv unknown/tokenizer.json tokenizer.json # which would not help
expect 3 "$lmquant" run unknown
says "cannot be run: the architecture 'NovelForCausalLM'"
mv tokenizer.json unknown
expect 0 "$lmquant" verify -q unknown.lmq
for checkpoint in unknown unknown.lmq; do
    expect 0 "$lmquant" inspect --tensors --json $checkpoint
    grep -q '"name": *"blk.0.ffn_norm.weight"' stdout ||
        fail "inspect does not show the name of $checkpoint"
    grep -q '"name": *"model.layers.0.post_attention_layernorm' stdout ||
        fail "inspect does not show the other name of $checkpoint"
    expect 3 "$lmquant" run $checkpoint "Once"
    says "NovelForCausalLM"
done
expect 0 "$lmquant" diff --gate 'identical>=1' unknown unknown
expect 0 "$lmquant" diff --gate 'missing<=0' --gate 'snr_db>=30' unknown \
    unknown.lmq
expect 0 "$lmquant" convert -q unknown.lmq again.lmq
expect 0 "$lmquant" export -q --to safetensors unknown.lmq unknown-again
expect 0 "$lmquant" diff --gate 'missing<=0' unknown unknown-again

# ---- What convert foresees ----

noted() {
    grep -q "^note: .*$1" stderr || fail "no note of '$1': $(cat stderr)"
}
expect 0 "$lmquant" convert --layout=rows model said.lmq
[ -s stderr ] && fail "convert speaks without need: $(cat stderr)"

# Biases that are promised, or denied.
copy_model promised
sed 's/"attention_bias": false/"attention_bias": true/' "$fable/config.json" \
    > promised/config.json
expect 0 "$lmquant" inspect promised
noted '"attention_bias": true), but there are none'
expect 0 "$top_builddir/tests/make/make_family" llama-tied-biased denied
expect 0 "$lmquant" inspect denied
grep -q "says that there are" stderr && fail "inspect doubts biases"
sed 's/"attention_bias": true/"attention_bias": false/' denied/config.json \
    > config.json
mv config.json denied
expect 0 "$lmquant" inspect denied
noted '"attention_bias": false), but there are 12'
sed 's/"attention_bias": false, *//' denied/config.json > config.json
mv config.json denied
expect 0 "$lmquant" inspect denied
noted 'not say that there are biases ("attention_bias"), but there are 12'
[ "$(grep -c 'there are biases' stderr)" -eq 1 ] || fail "more than one note"
# A base that versions of the library take differently, unless it is said.
expect 0 "$top_builddir/tests/make/make_family" cohere-plus unsaid
sed 's/"rope_theta": [0-9.e+]*, *//' unsaid/config.json > config.json
cmp -s config.json unsaid/config.json && fail "the base is not as it was"
mv config.json unsaid
expect 0 "$lmquant" convert unsaid unsaid.lmq
noted "cannot be run: a model of this kind without 'rope_theta'"
expect 0 "$lmquant" convert -f --rope-theta 10000 unsaid unsaid.lmq
grep -q "cannot be run" stderr && fail "--rope-theta says nothing"
copy_model exaone
sed 's/LlamaForCausalLM/ExaoneForCausalLM/; s/"rms_norm_eps": *[0-9.e-]*, *//
    s/"hidden_act"/"activation_function"/' model/config.json \
    > exaone/config.json
expect 0 "$lmquant" convert exaone exaone.lmq
noted "cannot be run: a model of this kind without 'layer_norm_epsilon'"
expect 0 "$lmquant" convert -f --norm-eps 1e-5 exaone exaone.lmq
grep -q "cannot be run" stderr && fail "--norm-eps says nothing"
# More ends than there is room for.
copy_model many
sed 's/"eos_token_id": *[0-9]*/"eos_token_id": [1,2,3,4,5,6,7,8,9,10]/' \
    model/config.json > many/config.json
expect 0 "$lmquant" convert many many.lmq
noted "'eos_token_id' has 10 tokens: the first 8 are kept"
ids=$(seq -s , 1 65)
echo "{\"eos_token_id\": [${ids%,65}]}" > many/generation_config.json
expect 0 "$lmquant" convert -f many many.lmq
grep -q "cannot be read" stderr && fail "64 ends are too many: $(cat stderr)"
echo "{\"eos_token_id\": [$ids]}" > many/generation_config.json
expect 0 "$lmquant" convert -f many many.lmq
noted "(generation_config.json: .eos_token_id. has more than 64 tokens)"
mkdir bare
cp model/config.json model/model.safetensors bare
expect 0 "$lmquant" convert bare bare.lmq
noted "there is no tokenizer"
cp model/tokenizer.json other.json
# A token more than the model has rows, then few tokens for many rows.
rows=$(sed -n 's/.*"vocab_size": *\([0-9]*\).*/\1/p' model/config.json)
cp -r model more
sed "s/\"added_tokens\": *\[/&{\"id\":$rows,\"content\":\"<more>\",\
\"special\":true,\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\
\"normalized\":false},/" model/tokenizer.json > more/tokenizer.json
expect 3 "$lmquant" convert more more.lmq
says "the tokenizer has $((rows + 1)) tokens, the model only $rows"
says "hint: --tokenizer FILE names the right one; --force-tokenizer"
is_one_sentence "a tokenizer of another model"
[ -e more.lmq ] && fail "a wrong tokenizer is converted"
expect 3 "$lmquant" convert --tokenizer more/tokenizer.json bare more.lmq
says "more/tokenizer.json: the tokenizer has"
expect 0 "$lmquant" convert --force-tokenizer more more.lmq
noted "tokens, the model only"
expect 0 "$lmquant" convert --tokenizer model/tokenizer.json more right.lmq
# Of a folder that has nothing else, of another checkpoint.
mkdir words
cp model/tokenizer* model/generation_config.json words
expect 0 "$lmquant" convert model whole.lmq
for given in words model whole.lmq; do
    expect 0 "$lmquant" convert -f --tokenizer $given bare given.lmq
    cmp -s whole.lmq given.lmq || fail "the tokenizer of $given is another"
done
expect 2 "$lmquant" convert -f --tokenizer given.lmq bare given.lmq
says "would destroy its source"
cmp -s whole.lmq given.lmq || fail "the tokenizer's source is destroyed"
mkdir nothing
for given in bare bare.lmq nothing; do
    expect 3 "$lmquant" convert -f --tokenizer $given model wrong.lmq
    says "lmquant: $given: has no tokenizer"
done
head -c 5000 whole.lmq > half.lmq
expect 3 "$lmquant" convert -f --tokenizer half.lmq model wrong.lmq
says "lmquant: half.lmq: "
rm -r words nothing whole.lmq given.lmq half.lmq
expect 0 "$synth" --dim 32 --hidden 64 --layers 1 --heads 2 \
    --kv-heads 2 --vocab 20000 wide
expect 0 "$lmquant" convert --tokenizer model/tokenizer.json wide wide.lmq
noted "has only .* tokens, the model 20000"
expect 3 "$lmquant" convert --tokenizer "$library" model wrong.lmq
says "library.sh: "
[ -e wrong.lmq ] && fail "a script is taken for a tokenizer"
expect 0 "$lmquant" convert --force-tokenizer --tokenizer "$library" model wrong.lmq
noted "the tokenizer cannot be read"
echo '{"version": "1.0", "model": {"type": "Other", "vocab": {}}}' \
    > more/tokenizer.json
expect 3 "$lmquant" export --to gguf --tokenizer more/tokenizer.json model \
    wrong.gguf
says "lmquant: more/tokenizer.json: the model 'Other' is not supported"
: > more/tokenizer.json # as a download that failed leaves it
expect 3 "$lmquant" run more "Once"
says "lmquant: more: tokenizer.json is no tokenizer that is known here"

copy_model cut
echo '{"bos_token": ' > cut/tokenizer_config.json
expect 0 "$lmquant" convert cut cut.lmq
noted "cannot be read (tokenizer_config.json: JSON, line 2"
expect 0 "$lmquant" inspect cut
noted "not understood: cut: tokenizer_config.json: JSON, line 2"
expect 0 "$lmquant" diff model cut
grep -q "the first, tokenizer_config.json: JSON, line 2" stdout ||
    fail "diff names no file: $(cat stdout)"

expect 0 "$top_builddir/tests/make/make_family" dbrx below
sed 's/"ffn_hidden_size": 36/"ffn_hidden_size": 40/' below/config.json > other
mv other below/config.json
expect 3 "$lmquant" inspect below
says "mlp.w1' has 180 rows of all kinds, but the configuration makes 200"

# ---- A folder with one file that is a model ----

mkdir one
cp model.lmq one
expect 0 "$lmquant" inspect one
cp "$fable/tokenizer.bin" one
expect 0 "$lmquant" run -q -n 4 --temp 0 one "Once"
expect 2 "$lmquant" convert -qf one one/model.lmq
says "would destroy its source"
rm one/model.lmq
expect 3 "$lmquant" inspect one
says "the folder holds no model"
cp "$fable/fable.bin" one
expect 0 "$lmquant" run -q -n 4 --temp 0 one "Once"
expect 0 "$lmquant" convert -qf one one/model.lmq
expect 3 "$lmquant" inspect one
says "the folder holds 2 checkpoints: fable.bin, model.lmq"
says "name one of them"
is_one_sentence "two models"
mkdir gguf
expect 0 "$lmquant" export -q --to gguf model.lmq gguf/model.gguf
expect 0 "$lmquant" inspect gguf
echo Once | "$lmquant" tokenize --ids gguf > ids || fail "tokenize of a folder"
expect 0 "$lmquant" validate -q --max-tokens 64 gguf model.lmq \
    "$fable/held-out-a.txt"
# What is written of it runs, with the tokenizer it came with.
expect 0 "$lmquant" export --to safetensors gguf/model.gguf floats
grep -q 'name it by' stderr && fail "its tokenizer is not found: $(cat stderr)"
echo Once | "$lmquant" tokenize --ids floats | cmp -s - ids ||
    fail "the tokenizer of floats is another"
mkdir torch
cp "$files/good-torch.pth" torch/weights.pth
expect 0 "$lmquant" inspect torch
finish
