#!/bin/sh
#
# test_members.sh - every command takes a set of files, by its folder and by any
# member, for the one file.
set -u
. "${srcdir:-.}/tests/library.sh"

cd "$work" || exit 99
export OMP_NUM_THREADS=1
mkdir model set
for file in config.json model.safetensors tokenizer.json \
    tokenizer_config.json generation_config.json; do
    cp "$fable/$file" model
done
expect 0 "$lmquant" convert -q --group-size=32 model one.lmq
size=$(wc -c < one.lmq)
expect 0 "$lmquant" convert --group-size=32 --shard-size $((size / 3)) \
    model set/m.lmq
grep -q "^set/m.lmq in $(ls set | wc -l) files\$" "$work/stdout" ||
    fail "the summary does not say how many files: $(cat "$work/stdout")"
last=$(ls set/*.lmq | tail -n 1)
[ "$(ls set | wc -l)" -ge 3 ] || fail "a set of $(ls set)"
# The first one holds the tokenizer, too.
for member in set/*.lmq; do
    [ "$(wc -c < "$member")" -le $((size / 3)) ] || fail "$member is too large"
done

# alike COMMAND...: says for the set, which takes the place of @, what it says
# for the one file.
alike() {
    for checkpoint in one.lmq set set/m-00001-of-* "$last"; do
        for argument; do
            shift
            [ "$argument" = @ ] && argument=$checkpoint
            set -- "$@" "$argument"
        done
        expect 0 "$lmquant" "$@"
        if [ $checkpoint = one.lmq ]; then
            cp stdout wanted
        else
            cmp -s stdout wanted || fail "other output: $*"
        fi
        for argument; do
            shift
            [ "$argument" = "$checkpoint" ] && argument=@
            set -- "$@" "$argument"
        done
    done
}

# The name that the output was given.
for name in set/m.lmq ./set/m.lmq; do
    expect 1 "$lmquant" verify $name
    says "$name: cannot open: No such file or directory"
    says "there is a set of that name; its first file stands for it: ${name%.lmq}-00001-of-"
done
for name in set/n.lmq set/m.gguf set/m set/m-00001.lmq nowhere/m.lmq; do
    expect 1 "$lmquant" verify $name
    grep -q "hint: there is a set" stderr && fail "a set for $name"
done

alike run -q -n 8 --temp 0 @ "Once upon"
head -c 600 "$fable/held-out-b.txt" > text
alike tokenize @ text

for checkpoint in set "$last"; do
    expect 0 "$lmquant" inspect --tensors --json $checkpoint
    expect 0 "$lmquant" inspect --tensors --yaml $checkpoint
    for tensor in token_embd.weight blk.0.attn_q.weight output_norm.weight; do
        expect 0 "$lmquant" inspect --tensor $tensor --stats one.lmq
        sed 1,2d stdout > wanted # names and sizes of files
        expect 0 "$lmquant" inspect --tensor $tensor --stats $checkpoint
        sed 1,2d stdout | cmp -s - wanted ||
            fail "inspect shows another $tensor of $checkpoint"
    done
    expect 0 "$lmquant" verify $checkpoint
    expect 0 "$lmquant" diff --gate 'identical>=1' one.lmq $checkpoint
    expect 0 "$lmquant" diff --gate 'identical>=1' $checkpoint one.lmq
    expect 0 "$lmquant" bench -q -p 4 -n 4 -r 1 $checkpoint
    expect 0 "$lmquant" validate -q --ctx 32 --text text \
        --gate 'kld.mean<=1e-6' one.lmq $checkpoint
done

# A file is called as its checkpoint, and so may what is in it.
for format in safetensors gguf llama2c compressed-tensors mlx; do
    rm -rf wanted
    expect 0 "$lmquant" export -q --to $format one.lmq wanted
    for checkpoint in set "$last"; do
        rm -rf out
        expect 0 "$lmquant" export -q --to $format $checkpoint out
        if [ -d wanted ]; then
            diff -r wanted out || fail "another $format of $checkpoint"
        else
            expect 0 "$lmquant" diff --gate 'identical>=1' wanted out
        fi
        n=$(find out -type f | xargs cat | wc -c)
        [ "$n" -eq "$(find wanted -type f | xargs cat | wc -c)" ] ||
            fail "$format of $checkpoint has $n bytes"
        ! grep -r 'm-0000.-of' out || fail "$format is called as a member"
    done
done

# again OPTION...: into one file and into another set.
again() {
    expect 0 "$lmquant" convert -q -f "$@" one.lmq wanted.lmq
    for checkpoint in set "$last"; do
        expect 0 "$lmquant" convert -q -f "$@" $checkpoint again.lmq
        expect 0 "$lmquant" diff --gate 'identical>=1' wanted.lmq again.lmq
        rm -rf other
        mkdir other
        expect 0 "$lmquant" convert -q "$@" --shard-size $((size / 2)) \
            $checkpoint other/o.lmq
        expect 0 "$lmquant" verify -q other
        expect 0 "$lmquant" diff --gate 'identical>=1' wanted.lmq other
    done
}
again
again --layout=rows
again --layout=tiles --compress
again --group-size=64
finish
