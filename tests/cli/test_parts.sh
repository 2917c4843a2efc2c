#!/bin/sh
#
# test_parts.sh - members of a set written one by one, in any order, and sealed:
# what one run writes; and what is missing, or of another conversion, is named.
set -u
. "${srcdir:-.}/tests/library.sh"

cd "$work" || exit 99
export OMP_NUM_THREADS=1
expect 0 "$synth" --dim 96 --hidden 256 --layers 3 --heads 4 --kv-heads 2 \
    --vocab 900 model
expect 0 "$synth" --dim 96 --hidden 256 --layers 3 --heads 4 --kv-heads 2 \
    --vocab 900 --seed 5 other

shim=$top_builddir/tests/cli/fault_shim.so
# A sanitizer wants to be the first that is loaded, unless it is told.
if has_sanitizer; then
    ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS-}
    export ASAN_OPTIONS
fi

# part I/N OPTION...: into is/.
part() {
    at=$1
    shift
    expect 0 "$lmquant" convert -q --part $at "$@" model is/m.lmq
}

# refused STATUS TEXT COMMAND...
refused() {
    wanted=$1 text=$2
    shift 2
    expect "$wanted" "$lmquant" "$@"
    says "$text"
    is_one_sentence "$*"
}

for options in "" "--layout=rows -z -g 32" "--scales=f32 --tie=never" \
    "--set ffn_down=bf16" "--encoding=q4"; do
    for n in 1 3 7 40; do
        rm -rf good is
        mkdir good is
        expect 0 "$lmquant" convert -q $options --parts $n model good/m.lmq
        [ "$(ls good | wc -l)" -eq $n ] || fail "--parts $n: $(ls good)"
        expect 0 "$lmquant" verify -q good
        i=$n
        while [ $i -gt 0 ]; do
            part $i/$n $options
            i=$((i - 1))
        done
        part 1/$n $options # again
        expect 0 "$lmquant" seal -q is
        diff -r good is > differences ||
            fail "parts of $n with '$options': $(cat differences)"
        expect 0 "$lmquant" join -q is one.lmq -f
        expect 0 "$lmquant" convert -q -f $options model same.lmq
        cmp -s one.lmq same.lmq || fail "join of $n parts with '$options'"
    done
done

# Where a file system cannot reserve room parts have their sizes all the same.
# The first calls about space cut the journal and the part off; 22 is EINVAL.
rm -rf good is
mkdir good is
expect 0 "$lmquant" convert -q --parts 3 model good/m.lmq
for i in 1 2 3; do
    FAULT_CLASS=space FAULT_AT=3 FAULT_ERRNO=22 FAULT_FD=9 LD_PRELOAD=$shim \
        "$lmquant" convert -q --part $i/3 model is/m.lmq 9> reached
done
if [ -s reached ]; then
    expect 0 "$lmquant" seal -q is
    diff -r good is > differences ||
        fail "parts without reserved room: $(cat differences)"
else
    skip "nothing can be preloaded here"
fi

# ---- A source that is another one meanwhile ----

# Where no sample is taken of it: a block of a download that comes later.
expect 0 "$synth" --dim 128 --hidden 512 --layers 4 --heads 4 --kv-heads 2 \
    --vocab 900 late
size=$(wc -c < late/model.safetensors)
at=$(((size - 4096) / 63 * 20 + 9000))
cp -R late early
dd if=/dev/zero of=early/model.safetensors bs=1 seek=$at count=4096 \
    conv=notrunc 2> /dev/null
cmp -s early/model.safetensors late/model.safetensors &&
    fail "the two are the same"
for begun in early late; do
    rm -rf is source
    mkdir is source
    cp -R $begun/. source
    expect 0 "$lmquant" convert -q --part 1/2 source is/m.lmq
    cp late/model.safetensors source
    touch -d @1 source/model.safetensors
    expect 0 "$lmquant" convert -q --part 2/2 source is/m.lmq
    if [ $begun = early ]; then
        refused 2 "some are others now" seal is
    else
        expect 0 "$lmquant" seal -q is
        expect 0 "$lmquant" convert -q -f late late.lmq
        expect 0 "$lmquant" diff --gate 'identical>=1' late.lmq is
    fi
done

# ---- A part is told once, however often it was written ----

cp -R late nan
offset=$(od -An -t u8 -N 8 nan/model.safetensors)
printf '\000\000\300\177' |
    dd of=nan/model.safetensors bs=1 seek=$((offset + 8)) conv=notrunc \
        2> /dev/null
rm -rf is
mkdir is
for i in 1 2; do
    expect 0 "$lmquant" convert -q --on-nonfinite=zero --part $i/2 nan is/m.lmq
done
for i in 1 2; do
    rm -f is/*-0000$i-*.part
    expect 0 "$lmquant" convert -q --on-nonfinite=zero --part $i/2 nan is/m.lmq
done
expect 0 "$lmquant" seal --json is
grep -q '"zeroed_elements": *1\b' stdout ||
    fail "zeroed: $(grep zeroed stdout)"

# Where nothing is quantized there is no noise to tell.
rm -rf is
mkdir is
for i in 1 2; do
    expect 0 "$lmquant" convert -q --keep '*' --part $i/2 model is/m.lmq
done
expect 0 "$lmquant" seal is
grep -q 'sealed, 2 files, [0-9.]* [kM]B$' stdout ||
    fail "a set of floats is sealed: $(cat stdout)"

if "$lmquant" convert -q --digests model digests.lmq 2> /dev/null; then
    rm -rf good is
    mkdir good is
    expect 0 "$lmquant" convert -q --digests --parts 5 model good/m.lmq
    for i in 3 1 5 4 2; do
        part $i/5 --digests
    done
    expect 0 "$lmquant" seal -q is
    diff -r good is > /dev/null || fail "parts with digests"
    expect 0 "$lmquant" verify -q is
fi

# What a text makes of a layer is no process's own: the parts are one run's.
text=$fable/held-out-a.txt
calibrated="--calibrate-tokens 400 -c 64 $fable"
expect 0 "$lmquant" convert -q --calibrate "$text" $calibrated learnt.lmq
rm -rf is
mkdir is
expect 0 "$lmquant" convert -q --calibrate "$text" --parts 3 $calibrated \
    is/m.lmq
expect 0 "$lmquant" join -q -f is one.lmq
cmp -s one.lmq learnt.lmq || fail "another set from a text"
expect 0 "$lmquant" convert -q --calibrate "$text" --resume $calibrated n.lmq
cmp -s n.lmq learnt.lmq || fail "another file with --resume"
# Each by itself, in any order and again, all at once; the head may be the
# embedding, tensors may be cut.
learn() { # OPTIONS...
    "$lmquant" convert -q -j 1 --calibrate "$text" $calibrated "$@" is/m.lmq
}
for how in "" "-e q4 --rotate --digests" "--tie never -e q5 --group-size 32"; do
    rm -rf good
    mkdir good
    expect 0 "$lmquant" convert -q --calibrate "$text" $how --parts 4 \
        $calibrated good/m.lmq
    for order in "1 2 3 4" "4 2 2 1 3"; do
        rm -rf is
        mkdir is
        for i in $order; do
            expect 0 learn $how --part $i/4
        done
        expect 0 "$lmquant" seal -q is
        diff -r good is > /dev/null || fail "calibrated ($how), $order"
    done
    rm -rf is
    mkdir is
    for i in 1 2 3 4; do
        learn $how --part $i/4 > said 2>&1 || echo "part $i fails" >> ill &
    done
    wait
    [ -f ill ] && fail "at once: $(cat ill)"
    expect 0 "$lmquant" seal -q is
    diff -r good is > /dev/null || fail "calibrated at once ($how)"
done
# What others have written is used: behind parts of another text, whose journals
# say that they are of this one, the last part is another one.
rm -rf is theirs
mkdir is theirs
for i in 1 2 3; do
    expect 0 learn --tie never --part $i/4
    expect 0 "$lmquant" convert -q --calibrate "$fable/held-out-b.txt" \
        $calibrated --tie never --part $i/4 theirs/m.lmq
done
cp -r is ours
expect 0 learn --tie never --part 4/4
cp is/m-00004-of-00004.lmq.part last
rm -rf is
mv theirs is
for journal in is/*.journal; do
    sed -n 1,2p "ours/${journal#is/}" > journal
    sed 1,2d "$journal" >> journal
    cp journal "$journal"
done
expect 0 learn --tie never --part 4/4
cmp -s is/m-00004-of-00004.lmq.part last &&
    fail "what others have written is not used"
# But not if it is damaged, cannot be read, or has no journal.
rm -rf is
mv ours is
for at in 1 2 3 4 5 6 7 8 9; do
    FAULT_CLASS=read FAULT_AT=$((2 * at + 20)) FAULT_ERRNO=116 FAULT_FD=1 \
        LD_PRELOAD=$shim "$lmquant" convert -q -j 1 --calibrate "$text" \
        $calibrated --tie never --part 4/4 is/m.lmq > stdout 2> stderr
    status=$?
    [ $status -eq 0 ] || [ $status -eq 1 ] || fail "read $at: $status"
    expect 0 learn --tie never --part 4/4
    cmp -s is/m-00004-of-00004.lmq.part last || fail "read $at: another part"
    rm is/m-00004-of-00004.lmq.*
done
for part in is/m-00001-of-00004.lmq.part is/m-00002-of-00004.lmq.part; do
    size=$(wc -c < "$part")
    dd if=/dev/zero of="$part" bs=1000 seek=$((size / 2000)) count=20 \
        conv=notrunc 2> /dev/null
done
expect 0 learn --tie never --part 4/4
cmp -s is/m-00004-of-00004.lmq.part last || fail "behind damaged parts"
rm is/m-00001-of-00004.lmq.journal is/m-00002-of-00004.lmq.journal
rm is/m-00004-of-00004.lmq.*
expect 0 learn --tie never --part 4/4
rm is/m-00001-of-00004.lmq.part is/m-00002-of-00004.lmq.part
expect 0 learn --tie never --part 1/4
# Journals of another conversion, or of nothing, say nothing.
echo "lmquant journal 1" > is/m-00002-of-00004.lmq.journal
expect 0 learn --tie never --part 3/4
rm is/*2-of*
expect 0 learn --tie never --part 2/4
mkdir tied
cp is/*1-of* tied
rm -rf good
mkdir good
expect 0 "$lmquant" seal -q is
expect 0 "$lmquant" convert -q --calibrate "$text" --tie never --parts 4 \
    $calibrated good/m.lmq
diff -r good is > /dev/null || fail "calibrated behind damaged parts"
rm -rf is
mv tied is
expect 0 learn -e q4 --tie never --part 4/4

# Killed before any of its calls, seal is started again.
rm -rf good is
mkdir good is
expect 0 "$lmquant" convert -q --parts 3 model good/m.lmq
for class in write fsync rename unlink; do
    for at in 1 2 3 4 5 6 7 8 9 10 11 12 13; do
        rm -f is/*
        for i in 1 2 3; do
            part $i/3
        done
        FAULT_CLASS=$class FAULT_AT=$at FAULT_ERRNO=KILL FAULT_FD=1 \
            LD_PRELOAD=$shim "$lmquant" seal -q is > stdout 2> stderr
        status=$?
        [ $status -eq 0 ] || expect 0 "$lmquant" seal -q is
        diff -r good is > differences ||
            fail "seal, killed before $class $at: $(cat differences)"
    done
done 2> /dev/null

# Killed when names are given and the journal is still there: what has the name
# now may be somebody's.
leave() { # NAME
    rm -rf is
    mkdir is
    FAULT_CLASS=unlink FAULT_AT=2 FAULT_ERRNO=KILL FAULT_FD=1 \
        LD_PRELOAD=$shim "$lmquant" convert -q --resume model is/o.lmq \
        > stdout
    status=$?
    [ -f is/o.lmq ] && [ -f is/o.lmq.journal ] || fail "$status, and nothing"
} 2> stderr
expect 0 "$lmquant" convert -q model whole.lmq
leave
expect 0 "$lmquant" convert -q --resume model is/o.lmq
cmp -s is/o.lmq whole.lmq || fail "another file behind its name"
for foreign in text "-e q4" "--tie never"; do
    leave
    case $foreign in
    text) echo somebody > theirs && cp theirs is/o.lmq ;;
    *)
        expect 0 "$lmquant" convert -q -f $foreign model is/o.lmq
        cp is/o.lmq theirs
        ;;
    esac
    refused 1 "exists already" convert -q --resume model is/o.lmq
    cmp -s theirs is/o.lmq || fail "'$foreign' is destroyed"
    expect 0 "$lmquant" convert -q -f --resume model is/o.lmq
    cmp -s is/o.lmq whole.lmq || fail "another file in place of '$foreign'"
done
rm -rf is theirs
mkdir is
part 1/2
part 2/2
FAULT_CLASS=unlink FAULT_AT=4 FAULT_ERRNO=KILL FAULT_FD=1 \
    LD_PRELOAD=$shim "$lmquant" seal -q is > stdout 2> stderr
expect 0 "$lmquant" convert -q -f --parts 2 -e q4 model is/m.lmq
mkdir theirs
cp is/*.lmq theirs
refused 1 "exists already" seal -q is
rm is/*.journal
rm -f is/*.part
diff -r theirs is > /dev/null || fail "a set is destroyed"

# So may the members of an older set, which go last, all of them or none; and
# nothing else is left behind.
rm -rf theirs
mkdir theirs
expect 0 "$lmquant" convert -q --method absmax --parts 2 model theirs/m.lmq
for class in rename unlink; do
    for at in 1 2 3 4; do
        rm -rf is
        mkdir is
        for i in 1 2 3; do
            part $i/3
        done
        cp theirs/* is
        FAULT_CLASS=$class FAULT_AT=$at FAULT_ERRNO=KILL FAULT_FD=1 \
            LD_PRELOAD=$shim "$lmquant" seal -q -f is > stdout 2> stderr
        [ -z "$(find is -name '*-of-00002.lmq')" ] ||
            refused 1 "exists already" seal -q is
        expect 0 "$lmquant" seal -q -f is
        diff -r good is > differences ||
            fail "seal -f, killed before $class $at: $(cat differences)"
    done
done 2> /dev/null

# What is read is not replaced by what is gone on with either.
rm -rf is
mkdir is
expect 0 "$lmquant" convert -q --print-recipe model x.lmq
cp stdout recipe.yaml
FAULT_CLASS=unlink FAULT_AT=2 FAULT_ERRNO=KILL FAULT_FD=1 \
    LD_PRELOAD=$shim "$lmquant" convert -q --resume --recipe recipe.yaml model \
    is/o.lmq > stdout 2> stderr
cp recipe.yaml is/o.lmq
refused 2 "is a part of what is read" convert -q -f --resume \
    --recipe is/o.lmq model is/o.lmq
cmp -s recipe.yaml is/o.lmq || fail "a recipe is replaced by what it makes"

# A part of another size is somebody's, or on its way: it is not cut.
rm -rf is
mkdir is
part 1/2
part 2/2
for size in 1000 +1; do
    cp is/m-00002-of-00002.lmq.part keep.part
    truncate -s $size is/m-00002-of-00002.lmq.part
    cp is/m-00002-of-00002.lmq.part theirs/part
    refused 1 "m-00002-of-00002.lmq.part: has " seal is
    refused 1 "m-00002-of-00002.lmq.part: has " convert --part 2/2 model is/m.lmq
    cmp -s is/m-00002-of-00002.lmq.part theirs/part ||
        fail "a part of another size is changed"
    mv keep.part is/m-00002-of-00002.lmq.part
done
expect 0 "$lmquant" seal -q is

# Where nothing could be sealed nothing is begun.
rm -rf is
mkdir is
refused 2 "names no set" convert --part 1/2 model is/
for name in is/ . .. is/. is/..; do
    refused 2 "names no set" convert --parts 2 model $name
done
refused 2 "names no set" convert --shard-size 1M model .
refused 2 "name it too: is/../NAME.lmq" convert --parts 2 model is/...lmq
refused 2 "argument 2 is empty" convert --parts 2 model ""
refused 2 "one file of a set" convert --part 1/2 model is/m-00001-of-00003.lmq
refused 1 "cannot write into nowhere" convert --part 1/2 model nowhere/m.lmq
expect 0 "$lmquant" convert -q --parts 3 model is/m.lmq
refused 2 "is a part of what is read" convert -f -e q4 --part 1/2 is is/m.lmq
for name in is/m.lmq.lmq model/m.lmq; do # beside its source, too
    rm -rf is
    mkdir is
    chmod u+w model
    for i in 2 1 1; do
        expect 0 "$lmquant" convert -q --part $i/2 model $name
    done
    expect 0 "$lmquant" seal -q "${name%/*}"
    expect 0 "$lmquant" join -q -f "${name%.lmq}-00001-of-00002.lmq" o.lmq
    cmp -s o.lmq whole.lmq || fail "another set at $name"
done
rm model/m-*

# A recipe is what it was; a source need not have a name in UTF-8.
printf 'version: 1\nrules:\n- match: ffn_down\n  encoding: q4\n' > r.yaml
rm -rf is
mkdir is
part 1/2 --recipe r.yaml
part 2/2 --recipe r.yaml
echo 'version: 1' > r.yaml
here=$PWD
cd /
expect 0 "$lmquant" seal -q "$here/is"
cd "$here"
odd=$(printf 'm\344dl')
if cp -r model "$odd" 2> /dev/null; then
    rm -rf is
    mkdir is
    expect 0 "$lmquant" convert -q --part 1/1 "$odd" is/m.lmq
    refused 2 "--source names it" seal is
    expect 0 "$lmquant" seal -q --source "$odd" is
fi

# A journal that was changed, with sums that are right again.
forge() { # SED-SCRIPT JOURNAL
    : > forged
    while IFS= read -r line; do
        case $line in
        lmquant*) printf '%s\n' "$line" ;;
        *)
            text=$(printf '%s' "${line#* }" | sed "$1")
            set -- "$1" "$2" $(printf '%s' "$text" | gzip -c | tail -c 8 |
                od -An -tx1 -N4)
            printf '%s %s\n' "$6$5$4$3" "$text"
            ;;
        esac
    done < "$2" >> forged
    cp forged "$2"
}
rm -rf is
mkdir is
for change in 's/"source":"[^"]*",//' 's/"source":"[^"]*"/"source":7/' \
    's/"sum_sq":[0-9]*/"sum_sq":9221120237041090560/' \
    's/"max_abs":[0-9]*/"max_abs":3212836864/' \
    's/"crcs":\[\([0-9]*\),\([0-9]*\)/"crcs":[1,1/' 's/x/x/'; do
    rm -f is/*
    part 1/2
    part 2/2
    forge "$change" is/m-00001-of-00002.lmq.journal
    "$lmquant" seal -q is > stdout 2> stderr
    status=$?
    case $change:$status in
    s/x/x/:0) ;;
    *source*:2) says "--source names it" ;;
    *crcs*:0) refused 3 "CRC-32" verify is ;; # seal does not read contents
    *:3) says "is not finished" ;;
    *) fail "$change: $status, $(cat stderr)" ;;
    esac
done

# What was made and failed at once does not stand in the way of the next try.
call=0
while :; do
    call=$((call + 1))
    rm -f is/*
    FAULT_CLASS=stat FAULT_AT=$call FAULT_ERRNO=5 FAULT_FD=1 \
        LD_PRELOAD=$shim "$lmquant" convert -q --part 1/3 model is/m.lmq \
        > stdout 2> stderr
    status=$?
    [ -s stdout ] || break
    [ $status -eq 0 ] || part 1/3
done
[ $call -gt 10 ] || fail "only $call calls of stat"

# Killed between the journals that it removes at its end; then parts are run
# again, and one that has a journal still takes nothing away.
rm -f is/*
for i in 1 2 3; do
    part $i/3
done
if FAULT_CLASS=unlink FAULT_AT=6 FAULT_ERRNO=KILL FAULT_FD=1 \
    LD_PRELOAD=$shim "$lmquant" seal -q is > stdout 2> stderr; then
    skip "nothing can be preloaded here"
else
    [ "$(ls is | grep -c 'journal$')" -eq 2 ] ||
        fail "not between two journals: $(ls is)"
    for i in 1 2 3; do
        expect 1 "$lmquant" convert -q --part $i/3 model is/m.lmq
        if [ -e is/m-0000$i-of-00003.lmq.journal ]; then
            says "is complete, and was being sealed with the others"
            says "lmquant seal FOLDER goes on with that"
        else
            says "exists already"
        fi
    done
    expect 0 "$lmquant" seal --json is
    "$is_json" output < stdout > /dev/null || fail "seal --json: $(cat stdout)"
    says "all files had their names already"
    diff -r good is > differences || fail "ended: $(cat differences)"
    # Names that could not be given, and a part that is made again.
    rm -f is/*
    for i in 1 2 3; do
        part $i/3
    done
    FAULT_CLASS=rename FAULT_AT=2+ FAULT_ERRNO=5 FAULT_FD=1 \
        LD_PRELOAD=$shim "$lmquant" seal -q is > stdout 2> stderr &&
        fail "sealed without a name"
    rm -f is/m-00002-of-00003.lmq*
    refused 3 "of 3 parts 1 lack: m-00002-of-00003.lmq" seal is
    part 2/3
    expect 0 "$lmquant" seal -q is
    diff -r good is > differences || fail "in the end: $(cat differences)"
fi

# A part of a set that is sealed is refused, and nothing of it stays; nor does
# a set want as many files as the shell is content with.
expect 1 "$lmquant" convert -q --part 1/3 model is/m.lmq
says "m-00001-of-00003.lmq: exists already"
diff -r good is > differences || fail "a part too late: $(cat differences)"
for i in $(seq 1 40); do
    expect 0 "$lmquant" convert -q --part $i/40 model many.lmq
done
expect 0 sh -c "ulimit -S -n 32 && '$lmquant' seal -q . &&
    '$lmquant' verify -q many-00001-of-00040.lmq"
expect 1 sh -c "ulimit -n 32 && '$lmquant' verify -q many-00001-of-00040.lmq"
says "hint: a limit (ulimit -Hn) allows no more open files"
rm -f many-*

# What it prints.
for options in "" -v "-q --json" "-q --yaml" -q; do
    rm -f is/*
    for i in 2 1 3; do
        part $i/3
    done
    expect 0 "$lmquant" seal $options is
    case $options in
    "" | -v) grep -q 'sealed, 3 files' stdout || fail "seal says $(cat stdout)" ;;
    *json) "$is_json" files.2.name < stdout > /dev/null || fail "seal --json" ;;
    *yaml) grep -q '^files:' stdout || fail "seal --yaml" ;;
    *) [ -s stdout ] && fail "seal -q prints" ;;
    esac
done
expect 0 "$lmquant" convert -f --part 1/2 model x.lmq
grep -q '^part 1 of 2: x-00001-of-00002.lmq' stdout ||
    fail "--part says $(cat stdout)"

# What is missing, unfinished, of another source, option or count.
rm -rf is
mkdir is
part 1/4
part 3/4
refused 3 "of 4 parts 2 lack: m-00002-of-00004.lmq, m-00004-of-00004.lmq" seal is
says "hint: lmquant convert --part=I/4 writes part I"
refused 3 "parts of a set that is not sealed" inspect is
says "lmquant seal"
refused 3 "is a part of a container" inspect is/m-00001-of-00004.lmq.part
part 2/4
expect 0 "$lmquant" convert -q -g 32 --part 4/4 model is/m.lmq
refused 2 "m-00004-of-00004.lmq.journal: is of another conversion: --group-size" \
    seal is
refused 2 "is of another conversion" convert -q --part 4/4 model is/m.lmq
rm is/m-00004*
expect 0 "$lmquant" convert -q --part 4/4 other is/m.lmq
refused 2 "is of another conversion: the source is" seal is
rm is/m-00004*
part 4/4
# One that stands there under another number too.
cp is/m-00002-of-00004.lmq.part keep.part
cp is/m-00002-of-00004.lmq.journal keep.journal
cp is/m-00003-of-00004.lmq.part is/m-00002-of-00004.lmq.part
cp is/m-00003-of-00004.lmq.journal is/m-00002-of-00004.lmq.journal
refused 1 "m-00002-of-00004.lmq.part: has " seal is
says "it is not what was begun"
cmp -s is/m-00002-of-00004.lmq.part is/m-00003-of-00004.lmq.part ||
    fail "seal changes a part of another size"
cp keep.part is/m-00002-of-00004.lmq.part
refused 3 "part 2 of 4 is not finished: it lacks tensor" seal is
says "lmquant convert --part=2/4 goes on with it"
cp keep.part is/m-00002-of-00004.lmq.part
cp keep.journal is/m-00002-of-00004.lmq.journal
part 1/3
refused 2 "the folder has parts of two sets" seal is
rm is/*-of-00003*
head -c 900 keep.journal > is/m-00002-of-00004.lmq.journal
refused 3 "part 2 of 4 is not finished" seal is
part 2/4
mv model moved
refused 1 "model" seal is
expect 0 "$lmquant" seal --source moved is
says_ok=$(ls is | grep -c '\.lmq$')
[ "$says_ok" -eq 4 ] || fail "sealed: $(ls is)"
mv moved model
refused 3 "the folder has no parts of a set" seal is
expect 0 "$lmquant" convert -q --part 1/2 model is/m.lmq
expect 0 "$lmquant" convert -q --part 2/2 model is/m.lmq
refused 1 "exists already: a member of a set of this name" seal is
expect 0 "$lmquant" seal -q -f is
[ "$(ls is | wc -l)" -eq 2 ] || fail "seal -f leaves $(ls is)"
part 1/4
rm -f is/*.part is/*.journal
mkdir again
for i in 1 2 3 4; do
    expect 0 "$lmquant" convert -q --part $i/4 model again/m.lmq
done
expect 0 "$lmquant" seal -q again
rm -rf is
mv again is
refused 1 "exists already" convert -q --part 2/4 model is/m.lmq
refused 1 "nowhere" seal nowhere
refused 2 "expected I/N" convert --part 5/4 model is/m.lmq
refused 2 "both say where to cut" convert --part 1/4 --shard-size 1M model x
refused 2 "--part says 4 parts, --parts 3" convert --part 1/4 --parts 3 model x
finish
