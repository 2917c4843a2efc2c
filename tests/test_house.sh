#!/bin/sh
# The house as ARCHITECTURE.md draws it: includes go down the floors, no units
# (a .c and its .h) need each other in a circle, rooms and files stay small,
# nothing is there that nothing uses, and only cli/ prints, exits or speaks of
# --flags. What depends on what is read from the includes and from the objects
# that were built, so nothing can be overlooked.

set -u
. "${srcdir:-.}/tests/library.sh"

# From the ground up.
floors="base quantize formats runtime convert validate cli"

# ---- Includes ----

for file in $(cd "$srcdir" && find $floors -name '*.[ch]'); do
    sed -n 's,^#include "\([a-z0-9_/]*/[a-z0-9_]*\.h\)".*,\1,p' \
        "$srcdir/$file" | sed "s,^,$file ,"
done > "$work/includes"
awk -v floors="$floors" '
    BEGIN { n = split(floors, f, " "); for (i = 1; i <= n; i++) at[f[i]] = i }
    { from = $1; to = $2; sub("/.*", "", from); sub("/.*", "", to) }
    at[to] > at[from] { print $1 " includes " $2 }' \
    "$work/includes" > "$work/upwards"
[ -s "$work/upwards" ] && fail "includes that go up: $(cat "$work/upwards")"
# A unit is a file and its header: what either includes, both need.
sed 's/\.[ch] / /;s/\.h$//' "$work/includes" | awk '$1 != $2' | sort -u |
    tsort > /dev/null 2> "$work/circles"
[ -s "$work/circles" ] &&
    fail "units that need each other: $(cat "$work/circles")"
grep '^cli/' "$work/includes" | grep -v ' cli/' > "$work/cli"
[ -s "$work/cli" ] && fail "cli/ sees more than lmquant.h: $(cat "$work/cli")"

# ---- Rooms ---- A folder is taken in at a glance, a name says which file is
# meant wherever it stands, and a file is one thing.

files_most=24
lines_most=700
columns_most=80
(cd "$srcdir" && find $floors -name '*.[ch]') > "$work/files"
sed 's,/[^/]*$,,' "$work/files" | sort | uniq -c |
    awk -v most=$files_most '$1 > most { print $2 " (" $1 ")" }' > "$work/rooms"
[ -s "$work/rooms" ] &&
    fail "more than $files_most files in a folder: $(cat "$work/rooms")"
(cd "$srcdir" && find $floors tests -name '*.[ch]') | sed 's,.*/,,' |
    sort | uniq -d > "$work/names"
[ -s "$work/names" ] && fail "names of several files: $(cat "$work/names")"
(cd "$srcdir" && find $floors tests -name '*.[ch]') | while read -r file; do
    n=$(wc -l < "$srcdir/$file")
    [ "$n" -le "$lines_most" ] || echo "$file ($n)"
done > "$work/long"
[ -s "$work/long" ] &&
    fail "more than $lines_most lines in a file: $(cat "$work/long")"

(cd "$srcdir" && find $floors tests -name '*.[ch]' -exec \
    awk -v most=$columns_most 'length($0) > most { print FILENAME ":" FNR }' \
    {} +) > "$work/wide"
[ -s "$work/wide" ] &&
    fail "lines of more than $columns_most columns: $(cat "$work/wide")"

# What the release does not have, nobody else can build.
for file in $(cd "$srcdir" && find $floors -name '*.[ch]'); do
    grep -qF "$file" "$srcdir/Makefile.am" || echo "$file"
done > "$work/unreleased"
[ -s "$work/unreleased" ] &&
    fail "not in Makefile.am: $(cat "$work/unreleased")"

# ---- Symbols ----

# "FILE KIND SYMBOL", the file as in the source tree, without its ending. With
# link-time optimisation objects may have no symbols that nm can read.
(cd "$srcdir" && find $floors -name '*.c') | sed 's/\.c$//' > "$work/sources"
for floor in $floors; do
    [ "$floor" = cli ] && kept= || kept=/.libs
    find "$top_builddir/$floor" -path "*$kept/*.o"
done > "$work/objects"
xargs nm -A < "$work/objects" 2> /dev/null |
    sed -n "s,^$top_builddir/\(.*\)\.o:[0-9a-f ]*\([A-Za-z]\) \(.*\)$,\1 \2 \3,p" |
    sed '/ __odr_asan\./d;s,/\.libs/,/,;s,/lib[a-z0-9]*_la-,/,;s,/lmquant-,/,' | sort -u |
    awk 'NR == FNR { is_source[$1] = 1; next } $1 in is_source' \
        "$work/sources" - > "$work/symbols"
if ! grep -q ' T main$' "$work/symbols"; then
    echo "nm reads no symbols from these objects"
    exit 77
fi

# "USER DEFINER SYMBOL"
awk '$2 ~ /^[TDRBC]$/ { where[$3] = $1 }
    $2 == "U" { n++; user[n] = $1; symbol[n] = $3 }
    END { for (i = 1; i <= n; i++) if (symbol[i] in where)
            print user[i], where[symbol[i]], symbol[i] }' \
    "$work/symbols" > "$work/uses"

# The same of what is linked, whatever is included.
cut -d ' ' -f 1,2 "$work/uses" | sort -u | tsort > /dev/null 2> "$work/circles"
[ -s "$work/circles" ] &&
    fail "files that depend on each other: $(cat "$work/circles")"

# What a program of others may call stands in lmquant.h; what is there for a
# test alone counts as used.
awk '$2 ~ /^[TDRB]$/ && $3 != "main" { print $3, $1 }' "$work/symbols" |
    while read -r symbol file; do
        grep -q " $symbol\$" "$work/uses" ||
            grep -qrwF --include='*.[ch]' "$symbol" \
                "$srcdir/lmquant.h" "$srcdir/tests" ||
            echo "$symbol ($file)"
    done > "$work/unused"
[ -s "$work/unused" ] && fail "nothing uses: $(cat "$work/unused")"

awk '$1 !~ /^cli\// && $2 == "U" && $3 ~ \
        /^(_*(printf|vprintf)(_chk)?|puts|putchar|perror|exit|_exit|abort|stdout|stderr)(@.*)?$/ \
        { print $1, $3 }' "$work/symbols" > "$work/prints"
[ -s "$work/prints" ] && fail "prints or exits: $(cat "$work/prints")"

# ---- Words ---- What options are called on the command line is cli/'s own.

flags=$(sed -n "s/^ *{\('.'\|0\), \"\([a-z][a-z-]*\)\",.*/\2/p" \
    "$srcdir"/cli/*.c | sort -u | paste -sd '|')
[ -n "$flags" ] || fail "cli/ has no options"
for floor in $floors; do
    [ "$floor" = cli ] ||
        (cd "$srcdir" && grep -rnE "^[^*]*\"[^\"]*--($flags)\>" \
            --include='*.[ch]' "$floor")
done > "$work/flags"
[ -s "$work/flags" ] &&
    fail "says --flags where the library has members: $(cat "$work/flags")"

# ---- The version ---- Whoever makes a package says the same one.

version=$(sed -n 's/^AC_INIT(\[lmquant\], \[\(.*\)\])$/\1/p' \
    "$srcdir/configure.ac")
grep -q "^Version: *$version\$" "$srcdir/lmquant.spec" ||
    fail "lmquant.spec is not of version '$version'"
grep -q "^__version__ = \"$version\"\$" "$srcdir/python/lmquant/__init__.py" ||
    fail "the Python module is not of version '$version'"

echo "$(wc -l < "$work/objects") objects," \
    "$(cut -d ' ' -f 1,2 "$work/uses" | sort -u | wc -l) arrows"
finish
