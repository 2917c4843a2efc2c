#!/bin/sh
#
# coverage.sh - what the tests reach, floor by floor.
#
#   tests/coverage.sh BUILD     a table of what ran in BUILD, and the lines
#                               that did not in BUILD/coverage.txt
#
# BUILD was configured with --enable-coverage; `make coverage` there runs the
# tests first. Needs gcov, of the gcc that built. A line counts once, whatever
# the number of objects that it is in, and is covered if one of them ran it;
# lines of tests do not count. Objects for instruction sets that this machine
# lacks cannot run: they are left out, and named.
set -u

top=$(cd "$(dirname "$0")/.." && pwd)
floors="base quantize formats runtime convert validate cli"

die() {
    echo "coverage: $*" >&2
    exit 1
}

[ $# -eq 1 ] || {
    sed -n '5,12s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
build=$(cd "$1" && pwd) || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/lmquant-coverage-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
gcov=${GCOV:-gcov}
command -v "$gcov" > /dev/null || die "there is no $gcov (GCOV=... names one)"

cd "$build" || exit 1
find $floors -name '*.gcno' | sort > "$work/all"
[ -s "$work/all" ] ||
    die "nothing here counts lines: configure with --enable-coverage"
find $floors -name '*.gcda' | grep -q . || die "nothing ran: make coverage"

# ---- Which objects can run here ----

: > "$work/missing"
for cpu in avx2 avxvnni avx512vnni neon; do
    used=$(LMQUANT_CPU=$cpu ./lmquant --version -v |
        sed -n 's/^instruction set: //p')
    [ "$used" = "$cpu" ] || echo "_${cpu%vnni}" >> "$work/missing"
done
# Of avxvnni and avx512vnni the files' names say the one or the other.
sed -i 's/^_avx$/_avxvnni/' "$work/missing"
# Only ranks of mpirun come there: make check-cluster, in a build that has it.
grep -q '^#define LMQ_HAVE_MPI' config.h || echo -ranked. >> "$work/missing"
grep -F -f "$work/missing" "$work/all" > "$work/left-out"
grep -vxF -f "$work/left-out" "$work/all" > "$work/objects"

# ---- What ran ----

# gcov LIST: "FILE LINE RAN" for each line of each object of the list.
# gcov prints "   COUNT:  LINE:text", the count "-" where there is no code,
# "#####" where it did not run, and names the file in a line 0 before.
lines_of() {
    while read -r object; do
        "$gcov" -t "$object" 2> "$work/said" ||
            die "$gcov $object: $(cat "$work/said")"
    done < "$1" | awk -v top="$top/" '
        {
            at = index($0, ":")
            count = substr($0, 1, at - 1)
            rest = substr($0, at + 1)
            gsub(/[ *]/, "", count)
            line = rest + 0
        }
        line == 0 && rest ~ /^ *0:Source:/ {
            file = rest
            sub(/^ *0:Source:/, "", file)
            if (index(file, top) == 1)
                file = substr(file, length(top) + 1)
            while (sub(/^[.][.]?\//, "", file))
                ;
        }
        line == 0 || count == "-" { next }
        { print file, line, (count !~ /^[#=%$]/) }'
}

lines_of "$work/objects" |
    awk -v floors="$floors" '
        BEGIN { n = split(floors, f, " ")
            for (i = 1; i <= n; i++) is_floor[f[i]] = 1 }
        { split($1, part, "/") }
        part[1] in is_floor { ran[$1 " " $2] += $3 }
        END { for (line in ran) print line, (ran[line] > 0) }' |
    sort -k1,1 -k2,2n > "$work/lines"
[ -s "$work/lines" ] || die "gcov says nothing of $top"

# ---- The lines that did not run: FILE PERCENT RANGES ----

awk '
    function close_file() {
        if (file == "")
            return
        close_range()
        printf "%6.2f %% %5d of %5d  %s %s\n", 100 * (n - bad) / n, n - bad,
            n, file, ranges
    }
    function close_range() {
        if (first == 0)
            return
        ranges = ranges (ranges == "" ? "" : ",") \
            (first == last ? first : first "-" last)
        first = 0
    }
    $1 != file { close_file(); file = $1; n = bad = first = 0; ranges = "" }
    { n++ }
    $3 { close_range(); next }
    { bad++; last = $2; if (first == 0) first = $2 }
    END { close_file() }' "$work/lines" > coverage.txt

# ---- The table ----

awk -v floors="$floors" '
    { split($1, part, "/"); n[part[1]]++; ran[part[1]] += $3 }
    END {
        printf "%-10s %8s %8s %8s\n", "floor", "lines", "covered", "%"
        count = split(floors, f, " ")
        for (i = 1; i <= count; i++) {
            if (n[f[i]] == 0)
                continue
            printf "%-10s %8d %8d %8.2f\n", f[i], n[f[i]], ran[f[i]],
                100 * ran[f[i]] / n[f[i]]
            all += n[f[i]]
            all_ran += ran[f[i]]
        }
        printf "%-10s %8d %8d %8.2f\n", "all", all, all_ran,
            100 * all_ran / all
    }' "$work/lines"

if [ -s "$work/left-out" ]; then
    echo "not counted, for it cannot run here:"
    lines_of "$work/left-out" | awk '$1 ~ /\.c$/ { n[$1]++ }
        END { for (file in n) printf "  %s (%d lines)\n", file, n[file] }' |
        sort
fi
(cd "$top" && find $floors -name '*.c') | sort > "$work/sources"
awk '{ print $1 }' "$work/lines" | sort -u > "$work/seen"
{ [ ! -s "$work/left-out" ] || lines_of "$work/left-out"; } |
    awk '{ print $1 }' | sort -u >> "$work/seen"
grep -vxF -f "$work/seen" "$work/sources" > "$work/unbuilt" &&
    echo "not counted, for it is not built or has no code here:" &&
    sed 's/^/  /' "$work/unbuilt"
echo "the lines that did not run: $build/coverage.txt"
