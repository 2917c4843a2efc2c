#!/bin/sh
#
# test_jobs.sh - the scripts that jobs prints, run with an sbatch that does at
# once what it is given: the bytes and digits of one run, also with names that
# a shell takes apart; and what has no place in a script.
set -u
. "${srcdir:-.}/tests/library.sh"

cd "$work" || exit 99
export OMP_NUM_THREADS=1
PATH=$work/bin:$top_builddir:$PATH
mkdir bin
# In place of Slurm: arrays task by task, the last one first; what it was given
# stands in a log.
cat > bin/sbatch << 'EOF'
#!/bin/sh
echo "$*" >> "$SBATCH_LOG"
while [ $# -gt 0 ]; do
    case $1 in
    --array=1-*) n=${1#--array=1-} n=${n%%%*} ;;
    --*) ;;
    *) break ;;
    esac
    shift
done
if [ -n "${n-}" ]; then
    i=$n
    while [ $i -gt 0 ]; do
        SLURM_ARRAY_TASK_ID=$i sh "$@" > /dev/null || exit
        i=$((i - 1))
    done
else
    sh "$@" > last || exit
fi
echo 42
EOF
# GNU parallel, as far as the script needs it.
cat > bin/parallel << 'EOF'
#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
    --jobs | --halt) shift ;;
    -*) ;;
    *) break ;;
    esac
    shift
done
while read -r i; do
    "$@" "$i" > /dev/null || exit
done
EOF
chmod +x bin/*
SBATCH_LOG=$work/log
export SBATCH_LOG

refused() { # STATUS TEXT ARGUMENTS...
    wanted=$1 text=$2
    shift 2
    expect "$wanted" "$lmquant" jobs "$@"
    says "$text"
    is_one_sentence "$*"
    [ -s stdout ] && fail "a refusal prints a script: $*"
}

# script NAME ARGUMENTS...
script() {
    name=$1
    shift
    expect 0 "$lmquant" jobs "$@"
    cp stdout "$name"
    sh -n "$name" || fail "no script: $*"
    if command -v shellcheck > found; then
        shellcheck -S warning "$name" > said || fail "shellcheck: $(cat said)"
    fi
}

odd='a b'"'"'c "$HOME" `ls`;&*\'
cp -r "$fable" "$odd"
chmod -R u+w "$odd"
mkdir good
expect 0 "$lmquant" convert -q -e q4 --keep 'blk.0.*' --parts 3 "$odd" \
    good/m.lmq
for how in "" --parallel; do
    rm -rf "out $odd"
    script "s $odd.sh" --nodes 3 $how --sbatch=--mem=1G convert -e q4 \
        --keep 'blk.0.*' "$odd" "out $odd/m.lmq"
    expect 0 sh "s $odd.sh"
    diff -r good "out $odd" > differences ||
        fail "another set ($how): $(cat differences)"
done
grep -q -- '--mem=1G .*--array=1-3 .*part$' log || fail "sbatch gets $(cat log)"
grep -q -- '--dependency=afterok:42 .*last$' log || fail "no last step"
grep -q 'reads 1.52 MB' "s $odd.sh" || fail "no arithmetic"

head -c 900 "$fable/held-out-a.txt" > "$odd.txt"
# A calibration part by part, one after the other.
learn="-c 64 --calibrate-tokens 200 --calibrate"
for tie in auto never; do
    rm -rf good
    mkdir good
    expect 0 "$lmquant" convert -q $learn "$odd.txt" --tie $tie --parts 3 \
        "$odd" good/m.lmq
    for how in "" --parallel; do
        rm -rf "out $odd"
        script c.sh --nodes 3 $how convert $learn "$odd.txt" --tie $tie \
            "$odd" "out $odd/m.lmq"
        grep -q 'one after the other' c.sh || fail "nothing of an order"
        expect 0 sh c.sh
        diff -r good "out $odd" > differences ||
            fail "another calibrated set ($how): $(cat differences)"
    done
done
grep -q -- '--array=1-3%1 .*part$' log || fail "at once: $(cat log)"
grep -q '^seq .*parallel' c.sh && fail "many hosts at once"
script c.sh --nodes 3 convert --own-text "$fable" x.lmq
grep -q -- '--array=1-3%1 ' c.sh || fail "texts of their own are written at once"
expect 0 "$lmquant" convert -q "$fable" fable.lmq
expect 0 "$lmquant" validate -q --json -c 64 "$odd" fable.lmq "$odd.txt" \
    --gate 'kld.mean<=1'
grep -v second stdout > good.json
for how in "" --parallel; do
    rm -rf "parts $odd"
    script v.sh --nodes 2 $how --parts-folder "parts $odd" validate -c 64 \
        "$odd" fable.lmq "$odd.txt" --json --gate 'kld.mean<=1'
    expect 0 sh v.sh
    [ -n "$how" ] || cp last stdout
    grep -v second stdout | cmp -s - good.json ||
        fail "another report ($how)"
done
plan="-c 64 --max-tokens 300 --target-bits 6.5"
expect 0 "$lmquant" plan -q $plan --text "$odd.txt" -o good.yaml "$odd"
for how in "" --parallel; do
    rm -rf "parts $odd" "r $odd.yaml"
    script p.sh --nodes 2 $how --parts-folder "parts $odd" plan $plan \
        --text "$odd.txt" -o "r $odd.yaml" "$odd"
    expect 0 sh p.sh
    cmp good.yaml "r $odd.yaml" || fail "another plan ($how)"
done
# A part that fails: no last step; a gate: its status.
script v.sh --nodes 2 --parallel validate -q -c 64 "$odd" fable.lmq \
    --text "$odd.txt" --gate 'kld.mean<=1e-9'
expect 4 sh v.sh
mv fable.lmq gone.lmq
expect 1 sh v.sh
script c.sh --nodes 2 convert -- "$fable" -x/m.lmq
expect 0 sh c.sh
expect 0 "$lmquant" verify -q ./-x

# The arithmetic, as it stands in the script.
costs() { # ARGUMENTS...
    script c.sh "$@"
    sed '1,/^#$/d; /^set -eu/,$d' c.sh | diff - wanted > differences ||
        fail "$*: other costs: $(cat differences)"
}
cat > wanted << 'EOF'
# all: reads 1.52 MB, writes about 391 kB
# each of 3: reads 506 kB, writes about 130 kB, in about 1 s
# (170 MB/s of source)
# disk: about 391 kB beside the source; memory: below 1 GB each
# lmquant convert --dry-run says the exact sizes
EOF
costs --nodes 3 convert "$fable" x.lmq
sed 's/391 kB/237 kB/; s/130 kB/78.9 kB/; s/1 s$/8.4 minutes/
    s/170 MB/1 kB/' wanted > other
mv other wanted
costs --nodes 3 --rate 1K convert -e q4 -g 32 --scales f32 "$fable" x.lmq
cat > wanted << 'EOF'
# each of 2 reads the reference, 1.52 MB, once for up to 16 windows of its own,
# and each model as often; reading alone takes about 4.2 hours a time (100 bytes/s)
# memory: half of what is free of each machine, or --memory; disk: 33 bytes for a
# token and a model
EOF
costs --nodes 2 --rate 100 validate "$fable" "$odd.txt"
cat > wanted << 'EOF'
# each of 2 measures its share of the matrices and encodings over 2,048 tokens;
# for as many at a time as memory has room for it reads the checkpoint, 1.52 MB,
# once, which takes about 1 s (200 MB/s)
# the last step measures the choice alone, over --max-tokens (16,384)
EOF
costs --nodes 2 plan --text "$odd.txt" --target-bits 6 "$fable"

# Which words stand in the parts, and which in the last step.
steps() { # PART LAST
    printf '%s\n%s\n' "$1" "$2" > wanted
    sed -n 's/^    exec lmquant \(.*\) ;;$/\1/p' c.sh |
        diff wanted - > differences || fail "steps: $(cat differences)"
}
cp "$fable/config.json" c.json
touch t.json x.txt
words="--tokenizer t.json --config c.json --rope-theta 5 --norm-eps 1e-5"
words="$words --no-mmap --threads 3"
script c.sh --nodes 2 convert -q -f -e q4 --keep a $words "$fable" x.lmq
steps "convert --part \"\$i/2\" --quiet --force --encoding q4 --keep a $words \
$fable x.lmq" "seal --force $words ."
words="$words --text x.txt $fable"
last="--report x.html --gate kld.p90<1 --baseline t.json --markdown"
script c.sh --nodes 2 validate -q -f $last -c 64 $words t.json
steps "validate --part \"\$i/2\" --force \
--report lmquant-parts/part-\"\$i\".json --quiet --ctx 64 $words t.json" \
    "merge --report x.html --gate 'kld.p90<1' --baseline t.json --markdown \
--force lmquant-parts/part-*.json"
for data in --json --yaml; do
    script c.sh --nodes 2 validate $data "$fable" t.json
    steps "validate --part \"\$i/2\" --force \
--report lmquant-parts/part-\"\$i\".json $fable t.json" \
        "merge $data lmquant-parts/part-*.json"
done
last="--output x.yaml --report x.html --json --yaml"
for target in "--target-size 9M" "--target-bits 5" "--target-kld 1"; do
    script c.sh --nodes 2 plan -q -f $last $target $words
    steps "plan --part \"\$i/2\" --force \
--output lmquant-plan-parts/part-\"\$i\".json --quiet $words" \
        "plan --quiet --force $last $target $words \
lmquant-plan-parts/part-*.json"
done
# Nothing stands beside the last one's JSON.
script c.sh --nodes 2 plan --json $target $words
steps "plan --part \"\$i/2\" --force \
--output lmquant-plan-parts/part-\"\$i\".json ${words% *} --quiet $fable" \
    "plan --json $target $words lmquant-plan-parts/part-*.json"

refused 2 "expected: convert|validate|plan"
refused 2 "none of convert, validate and plan" --nodes 2 run "$fable"
refused 2 "--nodes N says" convert "$fable" x.lmq
for word in cpu - -- -p; do
    refused 2 "expected an option of sbatch" --nodes 2 --sbatch=$word \
        convert "$fable" x.lmq
done
refused 2 "unexpected argument" --nodes 2 convert "$fable" x.lmq y
refused 2 "unknown option '--gate'" --nodes 2 convert --gate x "$fable" x.lmq
refused 2 "--scales is 'f8'" --nodes 2 convert --scales f8 "$fable" x.lmq
for threads in x 0 "1 --exclusive" "\$(touch PWNED)"; do
    refused 2 "--threads is '$threads'" --nodes 2 convert "-j$threads" \
        "$fable" x.lmq
done
script c.sh --nodes 2 -j 3 convert "$fable" x.lmq
grep -q -- ' --cpus-per-task=3 ' c.sh || fail "-j asks for no cores"
refused 2 "control character" --nodes 2 convert "$fable" 'x
.lmq'
refused 2 "control character" --nodes 2 --sbatch='--comment=x
y' convert "$fable" x.lmq
# A folder that is called as a command is.
script w.sh --parts-folder plan --nodes 2 validate -c 64 "$fable" \
    gone.lmq "$odd.txt" --gate 'kld.mean<=1'
grep -q "lmquant validate .*--report plan/part-" w.sh || fail "the folder is a command"
refused 2 "--parts-folder is of validate and plan" --nodes 2 \
    --parts-folder parts convert "$fable" x.lmq
for option in --part=1/2 --parts=2 --resume --dry-run --json --yaml \
    --progress=never; do
    refused 2 "${option%%=*} does not go with jobs" \
        --nodes 2 convert $option "$fable" x.lmq
done
refused 2 "--calibrate cannot be standard input" --nodes 2 convert \
    --calibrate - "$fable" x.lmq
refused 2 "'kld.men<=1' names no metric" --nodes 2 validate \
    --gate 'kld.men<=1' "$fable" gone.lmq
refused 2 "goes with --baseline" --nodes 2 validate \
    --gate 'kld.mean<=baseline' "$fable" gone.lmq
# What no merged report can have.
refused 2 "'floor.kld<=1' goes with --floor" --nodes 2 validate \
    --gate 'floor.kld<=1' "$fable" gone.lmq
refused 2 "'attribution.kld<=1' goes with --attribute" --nodes 2 validate \
    --gate 'kld.mean<=1' --gate ' attribution.kld<=1' "$fable" gone.lmq
refused 2 "'task.flips.p<=1' goes with --task" --nodes 2 validate \
    --gate 'task.flips.p<=1' "$fable" gone.lmq
# What no part can do.
refused 2 "a stride of 256 makes no sense" --nodes 2 validate -c 128 \
    --stride 256 "$fable" gone.lmq
refused 2 "second-half goes without --stride" --nodes 2 validate -c 128 \
    --score second-half --stride 64 "$fable" gone.lmq
refused 1 "nowhere.txt: cannot open" --nodes 2 plan --target-bits 6 \
    --text nowhere.txt "$fable"
refused 1 "nowhere.txt: cannot open" --nodes 2 convert \
    --calibrate nowhere.txt "$fable" out.lmq
refused 1 "nowhere.yaml: cannot open" --nodes 2 convert \
    --recipe nowhere.yaml "$fable" out.lmq
refused 1 "nowhere.txt: cannot open" --nodes 2 validate "$fable" gone.lmq \
    nowhere.txt
for option in --tokens --task --text; do
    refused 1 "nowhere.txt: cannot open" --nodes 2 validate \
        $option nowhere.txt "$fable" gone.lmq
done
for option in --attribute --floor; do
    refused 2 "$option does not go with jobs: parts cannot measure that" \
        --nodes 2 validate $option "$fable" gone.lmq
done
for option in --part=1/2 --progress=plain; do
    refused 2 "${option%%=*} does not go with jobs" \
        --nodes 2 validate $option "$fable" gone.lmq
done
refused 2 "that cannot be a pipe" --nodes 2 validate "$fable" gone.lmq -
refused 2 "standard input" --nodes 2 validate "$fable" gone.lmq --text -
refused 1 "nowhere" --nodes 2 convert nowhere x.lmq
refused 2 "name a target" --nodes 2 plan --text x "$fable"
refused 2 "the script makes the parts" --nodes 2 plan --text x \
    --target-bits 6 "$fable" part.json
refused 2 "--part does not go with jobs" --nodes 2 plan --part 1/2 "$fable"
refused 2 "is written" --nodes 2 convert "$fable" x.gguf

# What the parts or the last step would refuse, when others have waited.
book=$fable/held-out-a.txt
touch there.yaml there.html
while read -r wrong; do
    refused 2 "--${wrong%%=*} is '${wrong#*=}'" --nodes 2 \
        convert --calibrate "$book" "--$wrong" "$fable" x.lmq
done << 'EOF'
damping=x
mend=2
calibrate-tokens=0
ctx=1
set=x
keep=
keep=a=q8
rope-theta=0
EOF
refused 2 "--set '*=q9': encoding is 'q9'" --nodes 2 \
    convert '--set=*=q9' "$fable" x.lmq
refused 2 "--damping and --mend go with --calibrate" --nodes 2 \
    convert --damping=0.1 "$fable" x.lmq
for wrong in ctx=1 stride=x memory=x max-tokens=0 norm-eps=2; do
    refused 2 "--${wrong%%=*} is '${wrong#*=}'" --nodes 2 \
        validate --$wrong "$fable" there.yaml
done
for wrong in target-bits=x target-size=-5 target-kld=nan; do
    refused 2 "--${wrong%%=*} is '${wrong#*=}'" --nodes 2 \
        plan --text "$book" --$wrong "$fable"
done
plan="plan --text $book --target-bits 6"
refused 2 "--ctx is '1'" --nodes 2 $plan --ctx=1 "$fable"
refused 2 "--kv is 'q9'" --nodes 2 $plan --kv=q9 "$fable"
refused 2 "name a text" --nodes 2 plan --target-bits 6 "$fable"
refused 2 "exclude each other" --nodes 2 $plan --target-kld 1 "$fable"
refused 2 "r.json: the name says JSON" --nodes 2 $plan -o r.json "$fable"
refused 1 "there.yaml: exists already" --nodes 2 $plan -o there.yaml "$fable"
refused 1 "there.html: exists already" --nodes 2 $plan --report=there.html \
    "$fable"
script p.sh --nodes 2 $plan -f -o there.yaml "$fable"
judge="validate $fable there.yaml"
refused 2 "expected: validate CHECKPOINT MODEL" --nodes 2 validate "$fable"
refused 2 "o.json: the name says JSON" --nodes 2 $judge --report=o.json
refused 2 "--markdown goes without" --nodes 2 $judge --markdown --json
refused 2 "in place of --text" --nodes 2 $judge --tokens x --text x
refused 1 "there.html: exists already" --nodes 2 $judge --report=there.html
script v.sh --nodes 2 $judge --report=-
# Many that mpirun has started, but that do not share anything out.
OMPI_COMM_WORLD_SIZE=3
export OMPI_COMM_WORLD_SIZE
if ! ldd "$lmquant" 2> said | grep -q libmpi; then
    for command in "convert $fable x.lmq" "validate $fable gone.lmq" \
        "plan --target-bits 5 --text $fable/held-out-a.txt $fable"; do
        expect 2 "$lmquant" $command
        says "one of 3 ranks, but built without MPI"
    done
fi
mkdir x
expect 0 "$lmquant" convert -q --part 2/3 "$fable" x/x.lmq
unset OMPI_COMM_WORLD_SIZE
expect 0 "$lmquant" jobs convert --help
grep -q -- '--group-size' stdout || fail "no options of convert"
grep -q 'jobs \[options\] convert CHECKPOINT OUTPUT' stdout ||
    fail "what jobs convert --help shows first is refused"
expect 2 "$lmquant" jobs --nodes 2 convert
says "expected: convert CHECKPOINT OUTPUT.lmq"
finish
