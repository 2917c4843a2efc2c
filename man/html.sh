#!/bin/sh
# html.sh OUT PAGE... - the manual as HTML, by mandoc: a page for each page, an
# index, and the style beside them. `make html` runs it.

set -u
source=$(cd "$(dirname "$0")" && pwd) || exit 1
out=$1
shift
if ! command -v mandoc > /dev/null 2>&1; then
    echo "the manual as HTML: skipped, mandoc is not there (Debian: mandoc)"
    exit 0
fi
mkdir -p "$out" && cd "$out" || exit 1

# The line of an index for a page: what is its name, what is it about?
entry() {
    name=$(basename "$1")
    about=$(sed -n 's/^\.Nd //p' "$1" | sed 's/&/\&amp;/g;s/</\&lt;/g')
    printf '<tr><td><a href="%s.html">%s(%s)</a></td><td>%s</td></tr>\n' \
        "$name" "${name%.*}" "${name##*.}" "$about"
}

# A table of the pages whose names match, if there are some.
table() { # TITLE PATTERN PAGE...
    title=$1
    pattern=$2
    shift 2
    rows=$(for page in "$@"; do
        case $(basename "$page") in
        $pattern) entry "$page" ;;
        esac
    done)
    [ -z "$rows" ] ||
        printf '<h2>%s</h2>\n<table>\n%s\n</table>\n' "$title" "$rows"
}

# mandoc links to what is there: other manuals are elsewhere.
for page in "$@"; do
    : > "$(basename "$page").html"
done
for page in "$@"; do
    name=$(basename "$page")
    elsewhere=https://manpages.debian.org/%N.%S
    mandoc -T html -I os=lmquant \
        -O "style=manual.css,man=%N.%S.html;$elsewhere" "$page" |
        sed 's,<body>,&<nav><a href="index.html">The manual of lmquant</a></nav>,
             s,<head>,&<meta name="viewport" content="width=device-width">,' \
        > "$name.new" && test -s "$name.new" || exit 1
    mv "$name.new" "$name.html" || exit 1
done
cp "$source/manual.css" . || exit 1
{
    echo '<!DOCTYPE html>'
    echo '<html lang="en"><head><meta charset="utf-8">'
    echo '<meta name="viewport" content="width=device-width">'
    echo '<link rel="stylesheet" href="manual.css">'
    echo '<title>The manual of lmquant</title></head><body class="index">'
    echo '<h1>The manual of lmquant</h1>'
    table 'The program' 'lmquant.[1-9]' "$@"
    table 'Its commands' 'lmquant-*.1' "$@"
    table 'Pages that explain' 'lmquant-*.7' "$@"
    table 'Formats' '*.5' "$@"
    table 'The library' '*.3' "$@"
    echo '</body></html>'
} > index.html.new && mv index.html.new index.html
