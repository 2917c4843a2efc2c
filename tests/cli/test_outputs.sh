#!/bin/sh
#
# test_outputs.sh - no output destroys what it is made from, and none is half
# there.
set -u
. "${srcdir:-.}/tests/library.sh"

cd "$work" || exit 99
export OMP_NUM_THREADS=1

# Sums of all files of a folder, to see that none has changed.
sums() {
    (cd "$1" && find . -type f ! -name stdout ! -name stderr \
        ! -name '*.sums' -exec cksum {} + | sort -k 3)
}

# A model as files of every format.
mkdir model out
cp "$fable/config.json" "$fable/model.safetensors" "$fable/tokenizer.json" \
    "$fable/tokenizer_config.json" "$fable/generation_config.json" \
    "$fable/tokenizer.bin" model
cp "$fable/fable.bin" model.bin
echo text > model/merges.txt
expect 0 "$lmquant" convert -q model model.lmq
expect 0 "$lmquant" export -q --to gguf model.lmq model.gguf

# ---- Names that say another format ----

while read -r ending format advice; do
    expect 2 "$lmquant" convert model "x.$ending/"
    says "x.$ending/: the name says $format, but .lmq is written"
    says "hint: $advice; or choose another name"
done << 'END'
gguf GGUF 'lmquant export --to gguf' writes that
safetensors safetensors 'lmquant export --to safetensors' writes that, into a folder
pt PyTorch that is not written
pth PyTorch that is not written
json JSON --json prints that, to standard output
yaml YAML --yaml prints that, to standard output
END
expect 2 "$lmquant" convert model x.bin
says "the name says llama2.c or PyTorch, but .lmq is written"
says "'lmquant export --to llama2c' writes that of llama2.c"
expect 2 "$lmquant" convert model x.html
says "the name says a page, but .lmq is written"
says "'lmquant validate --report' writes that"
expect 2 "$lmquant" export --to gguf model x.lmq
says "the name says a container, but .gguf is written"
says "'lmquant convert' writes containers"

# ---- The source stays ----

ln -s model linked
ln -s model/model.safetensors link.safetensors
ln model/config.json hard-link
ln -s model.lmq link.lmq
ln model.gguf hard-gguf
sums . > before.sums

# kept COMMAND...: refused as a command line, and all is as it was.
kept() {
    expect 2 "$@"
    says "would destroy its source"
    is_one_sentence "$*"
    sums . | cmp -s - before.sums ||
        fail "$* changes its source"
    [ -z "$(ls -A | grep '^\.lmquant')" ] || fail "$* leaves something"
}
for force in -q -qf; do
    for part in model.safetensors config.json tokenizer.json \
        tokenizer_config.json generation_config.json tokenizer.bin \
        merges.txt; do
        ln -s "model/$part" part
        kept "$lmquant" convert $force model part
        rm part
    done
    kept "$lmquant" convert $force model hard-link
    kept "$lmquant" convert $force linked ./hard-link
    kept "$lmquant" convert $force model.lmq ./model.lmq
    kept "$lmquant" convert $force link.lmq model.lmq
    kept "$lmquant" convert $force model.lmq "$work/link.lmq"
    kept "$lmquant" export $force --to gguf model.gguf ./model.gguf
    kept "$lmquant" export $force --to gguf model.gguf hard-gguf
    kept "$lmquant" export $force --to llama2c model.bin ./model.bin
    ln -s "$PWD/model/tokenizer.json" given
    kept "$lmquant" convert $force --tokenizer model/tokenizer.json \
        model.bin given
    rm given
    ln -s model/config.json given
    kept "$lmquant" convert $force --config model/config.json \
        model/model.safetensors given
    kept "$lmquant" validate $force -o given model model.lmq "$fable/held-out-a.txt"
    rm given
    cp "$fable/held-out-a.txt" text
    sums . > before.sums
    kept "$lmquant" validate $force -o text model model.lmq ./text
    rm text
    sums . > before.sums
done
# A text that comes as standard input is read as well.
cp "$fable/held-out-a.txt" text
cp text text.copy
for command in "validate -f $fable $fable - --max-tokens 9 --report text" \
    "convert -f --calibrate - $fable text" \
    "plan -f --target-bits 6 --text - $fable -o text"; do
    # shellcheck disable=SC2086
    "$lmquant" $command < text > stdout 2> stderr
    [ $? -eq 2 ] || fail "$command: $(cat stderr)"
    says "is a part of what is read"
    cmp -s text text.copy || fail "$command destroys its text"
done

# Recipe and page appear together, or neither does, whichever call fails.
for class in fsync rename; do
    at=1 n_lost=0
    while FAULT_CLASS=$class FAULT_AT=$at FAULT_ERRNO=5 FAULT_FD=9 \
        LD_PRELOAD=$top_builddir/tests/cli/fault_shim.so "$lmquant" plan -q \
        --target-bits 6 --text text.copy --max-tokens 300 -c 128 "$fable" \
        -o recipe.yaml --report page.html 9> hit > stdout 2> stderr
    status=$?
    [ -s hit ]; do
        case $status:$(ls recipe.yaml page.html 2> /dev/null | wc -l) in
        0:2) ;;
        1:0) n_lost=$((n_lost + 1)) ;;
        *) fail "$class $at fails: status $status: $(cat stderr); $(ls)" ;;
        esac
        [ "$(ls -A | grep -c '^\.lmquant-')" -eq 0 ] ||
            fail "$class $at fails, and leaves $(ls -A)"
        rm -f recipe.yaml page.html
        at=$((at + 1))
    done
    rm -f recipe.yaml page.html
    if [ $at -eq 1 ]; then
        skip "nothing can be preloaded here"
    elif [ $n_lost -ne 2 ]; then
        fail "$n_lost failures of $class, expected one of each file"
    fi
done
expect 0 "$lmquant" plan -q --target-bits 6 --text text.copy --max-tokens 500 \
    -c 128 "$fable" -o recipe.yaml --report page.html
[ -s recipe.yaml ] && [ -s page.html ] || fail "not both: $(ls)"

# Rows of the embedding that no token has are unused tokens in GGUF: the same.
expect 0 "$synth" --shape tiny --vocab 520 padded
cp "$fable"/tokenizer* padded
expect 0 "$lmquant" export -qf --to gguf padded padded.gguf
expect 0 "$lmquant" diff padded padded.gguf --gate 'identical>=1'
expect 0 "$lmquant" diff padded.gguf padded --gate 'identical>=1'
expect 2 "$lmquant" export -qf --to safetensors model ./model/.
says "is where the checkpoint is"
expect 2 "$lmquant" export -qf --to safetensors linked model
expect 0 "$lmquant" convert -q model model/beside.lmq
expect 0 "$lmquant" convert -qf model model/beside.lmq
rm model/beside.lmq

# ---- What cannot be written is told before the work ----

# Of 4 GB as a hole, which nobody reads in a second.
expect 0 "$synth" --sparse --dim 4096 --hidden 11008 --layers 4 \
    --heads 32 --kv-heads 32 --vocab 32000 big
ln -s nowhere dangling
mkdir folder
echo x > file
# early STATUS WORDS OUTPUT
early() {
    for command in "convert -f" "export -f --to gguf" \
        "export -f --to safetensors"; do
        case "$command:$3" in
        *safetensors:folder | *safetensors:new/) continue ;;
        esac
        timeout 20 "$lmquant" $command -q -j1 big "$3" > stdout 2> stderr
        status=$?
        [ $status -eq "$1" ] || fail "$command to '$3': status $status"
        case "$command" in
        *safetensors) ;;
        *) says "$2" ;;
        esac
        is_one_sentence "$command '$3'"
    done
}
early 2 "is empty" ""
early 1 "dangling: is a symbolic link to 'nowhere'" dangling
early 1 "folder: is a folder" folder
early 2 "new/: is the name of a folder" new/
early 1 "no/where: cannot write into no: No such" no/where
early 1 "file/x: cannot be written: Not a directory" file/x
[ -L dangling ] || fail "the dangling link is gone"
[ -e nowhere ] && fail "a dangling link is written through"
rm -rf big
expect 1 "$lmquant" validate -f -o no/page.html model model.lmq "$fable/held-out-a.txt"
says "no/page.html: cannot write into no"

# ---- A name that says another format ----

expect 2 "$lmquant" convert model x.gguf
says "x.gguf: the name says GGUF, but .lmq is written"
expect 2 "$lmquant" convert -q model "$(printf 'x\033.gguf')"
says 'x\x1b.gguf: the name says GGUF'
expect 2 "$lmquant" convert model x.safetensors
expect 2 "$lmquant" plan --text "$fable/held-out-a.txt" --target-bits 7 \
    -o x.html model
says "x.html: the name says a page, but .yaml is written"
expect 2 "$lmquant" export --to gguf model x.lmq
expect 2 "$lmquant" export --to safetensors model x.gguf/
says "but .safetensors is written"
expect 2 "$lmquant" validate -o page.json model model.lmq
is_one_sentence "a page called JSON"

# ---- What is replaced ----

mode() {
    stat -c %a "$1" 2> /dev/null || stat -f %Lp "$1"
}
cp model.lmq old.lmq
chmod 640 old.lmq
ln -s old.lmq to-old.lmq
expect 0 "$lmquant" convert -qf --layout=rows model to-old.lmq
[ -L to-old.lmq ] || fail "-f replaces a link"
cmp -s model.lmq old.lmq && fail "-f through a link writes nothing"
[ "$(mode old.lmq)" = 640 ] || fail "-f changes the mode to $(mode old.lmq)"
(umask 027 && "$lmquant" convert -q model new.lmq) || fail "convert"
[ "$(mode new.lmq)" = 640 ] || fail "a new file ignores the umask"

# ---- A limit of file sizes ----

(ulimit -f 100 && exec "$lmquant" convert -qf model new.lmq) \
    > stdout 2> stderr
status=$?
[ $status -eq 1 ] || fail "ulimit -f: status $status"
says "new.lmq: cannot"
says "ulimit -f"
is_one_sentence "ulimit -f"
expect 0 "$lmquant" verify -q new.lmq

# ---- Several files are there, or none ----

# A folder stands where the last file should go: all else is put back.
expect 0 "$lmquant" export -q --to safetensors model.lmq set
rm set/tokenizer.json
mkdir set/tokenizer.json
sums set > before.sums
expect 1 "$lmquant" export -qf --to safetensors --type f16 model.lmq set
says "set/tokenizer.json"
sums set | cmp -s - before.sums || fail "a set is replaced in part"
[ "$(ls -A set | grep -c lmquant)" -eq 0 ] || fail "a set leaves $(ls -A set)"
rmdir set/tokenizer.json
expect 0 "$lmquant" export -qf --to safetensors --type f16 model.lmq set
grep -q float16 set/config.json || fail "the set is not replaced"
expect 0 "$lmquant" inspect -q set

# ---- A file system without unnamed files ----

shim=$top_builddir/tests/cli/no_tmpfile.so
if [ ! -e "$shim" ] || has_sanitizer; then
    skip "no library can be preloaded"
    finish
fi
old() {
    LD_PRELOAD=$shim "$lmquant" "$@"
}
expect 0 old convert -q model out/a.lmq
cmp -s out/a.lmq model.lmq || fail "a named temporary file differs"
[ "$(ls -A out)" = a.lmq ] || fail "left behind: $(ls -A out)"
expect 0 old export -qf --to safetensors model.lmq set
LD_PRELOAD=$shim NO_TMPFILE_KILL=1 "$lmquant" convert -q model out/b.lmq \
    2> /dev/null
[ "$(ls -A out | grep -c '^\.lmquant-')" -eq 1 ] ||
    fail "nothing was left to clean: $(ls -A out)"
# Locked by somebody who is alive, it stays.
left=$(cd out && echo .lmquant-*)
if command -v flock > /dev/null; then
    flock "out/$left" "$lmquant" convert -q model out/c.lmq
    [ -e "out/$left" ] || fail "what another program needs is removed"
fi
expect 0 "$lmquant" convert -q model out/d.lmq
[ -e "out/$left" ] && fail "the next run does not clean"

# ---- Unnamed files, but no /proc to name them through, or no links ----

for reason in NO_PROC NO_LINKS; do
    denied() {
        env "$reason=1" LD_PRELOAD="$shim" "$lmquant" "$@"
    }
    mkdir jail
    expect 0 denied convert -q model jail/a.lmq
    cmp -s jail/a.lmq model.lmq || fail "another container with $reason"
    expect 0 denied convert -qf --layout=rows model jail/a.lmq
    cmp -s jail/a.lmq model.lmq && fail "-f with $reason writes nothing"
    expect 0 denied export -q --to safetensors model.lmq jail/set
    expect 0 denied export -qf --to safetensors model.lmq jail/set
    expect 0 "$lmquant" inspect -q jail/set
    [ "$(ls -A jail | grep -c lmquant)" -eq 0 ] ||
        fail "left behind with $reason: $(ls -A jail)"
    rm -r jail
done
finish
