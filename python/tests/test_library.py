"""Finding the library, and what happens when it is another one."""

import subprocess
import sys
import unittest

from common import Case, run_python

import lmquant


class Library(Case):
    def test_what_is_named_is_loaded(self):
        status, out, err = run_python("import runpy; runpy.run_module('lmquant')")
        self.assertEqual(status, 0, err)
        done = subprocess.run(
            [sys.executable, "-m", "lmquant"], stdout=subprocess.PIPE
        )
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"library " + lmquant.library_version().encode(), done.stdout)
        self.assertIn(lmquant.instruction_set().encode(), done.stdout)

    def test_a_library_that_is_not_there_is_an_import_error_with_a_hint(self):
        program = (
            "try:\n import lmquant\n"
            "except ImportError as e: print(type(e).__name__, e)"
        )
        status, out, err = run_python(program, LMQUANT_LIBRARY="/nowhere.so")
        self.assertEqual(status, 0, err)
        self.assertIn("LibraryError the library liblmquant cannot be", out)
        self.assertIn("/nowhere.so", out)
        self.assertIn("hint: install lmquant", out)

    def test_another_library_is_refused(self):
        import ctypes.util

        other = ctypes.util.find_library("c")
        if not other:
            self.skipTest("no other library is known")
        status, out, err = run_python("import lmquant", LMQUANT_LIBRARY=other)
        self.assertNotEqual(status, 0)
        self.assertIn("has no lmq_version", err)
        self.assertIn("hint: it is no liblmquant", err)

    def test_all_that_is_exported_is_there(self):
        for name in lmquant.__all__:
            self.assertTrue(hasattr(lmquant, name), name)


if __name__ == "__main__":
    unittest.main()
