"""What README.md shows is true: its programs run, one after the other as they
stand there, and its tables have all there is."""

import contextlib
import io
import os
import re
import shutil
import unittest

from common import Case, fable, here, run_lmquant, text

import lmquant

page = (here.parent / "README.md").read_text(encoding="utf-8")


def programs():
    """The indented blocks that are Python."""
    for block in re.findall(r"(?:^    .*\n|^\n)+", page, re.M):
        lines = [line[4:] for line in block.splitlines()]
        source = "\n".join(lines)
        if "lmquant" not in source and "session" not in source:
            continue
        try:
            yield compile(source, "README.md", "exec")
        except SyntaxError:
            pass


class Page(Case):
    def test_its_programs_run(self):
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            shutil.copytree(fable, "llama")
            with open("held-out.txt", "wb") as file:
                file.write(text.read_bytes()[:6000])
            run_lmquant("convert", "-q", "llama", "a.lmq")
            run_lmquant("export", "-q", "--to", "gguf", "a.lmq", "b.gguf")
            said = io.StringIO()
            names = {}
            n = 0
            with contextlib.redirect_stdout(said):
                for program in programs():
                    exec(program, names)
                    n += 1
            self.assertGreaterEqual(n, 5)
        finally:
            os.chdir(before)
        for line in "PASS ", "(512,) b','", "(10, 512)", "converting ":
            self.assertIn(line, said.getvalue())

    def test_its_tables_name_every_exception_and_function(self):
        for name in lmquant.__all__:
            made = getattr(lmquant, name)
            if isinstance(made, type) and issubclass(made, Exception):
                if made is lmquant.Error:
                    continue
                also = [
                    base.__name__
                    for base in made.__bases__
                    if base is not lmquant.Error
                ]
                row = "| `%s` | %s|" % (
                    name,
                    "`%s` " % also[0] if also else "",
                )
                self.assertIn(row, page)
            elif callable(made) and made.__module__ == "lmquant._commands":
                self.assertIn("| `%s(" % name, page)


if __name__ == "__main__":
    unittest.main()
