"""What the suites share: where things are, and a container of the bundled
model."""

import atexit
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent
fable = root / "tests" / "data" / "fable"
files = root / "tests" / "files"
text = fable / "held-out-b.txt"
builddir = pathlib.Path(os.environ.get("top_builddir", root / "build"))

work = pathlib.Path(tempfile.mkdtemp(prefix="lmquant-python-"))
_owner = os.getpid()


@atexit.register
def _clean() -> None:
    if os.getpid() == _owner:
        shutil.rmtree(work, ignore_errors=True)


_container = work / "fable.lmq"


def container() -> pathlib.Path:
    """The bundled model in int8."""
    import lmquant

    if not _container.exists():
        lmquant.convert(fable, _container)
    return _container


def run_python(program, **environment):
    """A program of its own: its exit status, output and errors."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", program],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


def run_lmquant(*arguments):
    """The program's standard output, in bytes."""
    return subprocess.run(
        [str(builddir / "lmquant"), *map(str, arguments)],
        stdout=subprocess.PIPE,
        check=True,
    ).stdout


class Case(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=work))

    def assertStops(self, kind, pattern, function, *arguments, **options):
        with self.assertRaisesRegex(kind, pattern) as caught:
            function(*arguments, **options)
        return caught.exception
