#!/bin/sh
# The Python module over the shared library of this build: python/tests, where
# Python and NumPy are.

set -u
. "${srcdir:-.}/tests/library.sh"
python=${PYTHON:-python3}

if ! "$python" -c 'import sys, numpy; sys.exit(sys.version_info < (3, 9))' \
    2> /dev/null; then
    skip "the Python module: no Python 3.9 with numpy"
    exit 77
fi
for library in "$top_builddir"/.libs/liblmquant.so \
    "$top_builddir"/.libs/liblmquant.dylib; do
    [ -f "$library" ] && break
done
if ! [ -f "$library" ]; then
    skip "the Python module: no shared library was built"
    exit 77
fi

# A sanitizer has to be there before Python is.
CC=${CC:-$(sed -n 's/^CC = //p' "$top_builddir/Makefile")}
case $(sed -n 's/^EXTRA_FLAGS = //p' "$top_builddir/Makefile") in
*=thread*)
    skip "the Python module: ThreadSanitizer cannot watch Python"
    exit 77
    ;;
*=address*)
    LD_PRELOAD=$($CC -print-file-name=libasan.so)
    ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
    export LD_PRELOAD ASAN_OPTIONS
    ;;
esac

LMQUANT_LIBRARY=$library
PYTHONPATH=$srcdir/python
PYTHONDONTWRITEBYTECODE=1
TMPDIR=$work
export CC LMQUANT_LIBRARY PYTHONPATH PYTHONDONTWRITEBYTECODE TMPDIR
"$python" -m unittest discover -s "$srcdir/python/tests" "$@" ||
    fail "python/tests"
finish
