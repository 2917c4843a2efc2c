"""What the module declares is what lmquant.h declares, in the header's words
and in the compiler's numbers."""

import ctypes
import os
import re
import shlex
import subprocess
import unittest

from common import Case, root

import lmquant
from lmquant import _library, _types

header = re.sub(r"/\*.*?\*/", " ", (root / "lmquant.h").read_text(), flags=re.S)

# A C type, without const and names, and what stands for it.
scalars = {
    "int": ctypes.c_int,
    "unsigned": ctypes.c_uint,
    "long": ctypes.c_long,
    "size_t": ctypes.c_size_t,
    "int32_t": ctypes.c_int32,
    "uint64_t": ctypes.c_uint64,
    "double": ctypes.c_double,
    "enum lmq_status": ctypes.c_int,
    "enum lmq_report_format": ctypes.c_int,
    "size_t *": ctypes.POINTER(ctypes.c_size_t),
    "int *": ctypes.POINTER(ctypes.c_int),
    "int32_t *": ctypes.POINTER(ctypes.c_int32),
    "int32_t **": ctypes.POINTER(ctypes.POINTER(ctypes.c_int32)),
    "float *": ctypes.POINTER(ctypes.c_float),
    "char **": ctypes.POINTER(ctypes.c_char_p),
    "void *": ctypes.c_void_p,
}
structures = {kind.c_name: kind for kind in _library.STRUCTURES}


def split(declaration):
    """("const char *", "path") of "const char *path"."""
    found = re.fullmatch(r"(.*?[\s*])(\w+)", declaration.strip(), re.S)
    kind, name = found.groups() if found else (declaration, "")
    kind = re.sub(r"\bconst\b", "", kind)
    stars = kind.count("*")
    words = " ".join(kind.replace("*", " ").split())
    return words + (" " + "*" * stars if stars else ""), name


def expected(kind):
    """What may stand for a type of C."""
    if kind in scalars:
        found = {scalars[kind]}
        # A text that the library makes, or lists of texts.
        if kind == "char **":
            found.add(ctypes.POINTER(ctypes.c_void_p))
        return found
    if kind == "char *":
        return {ctypes.c_char_p, ctypes.c_void_p}
    name = re.fullmatch(r"struct (\w+) (\*+)", kind)
    if name.group(1) in structures:
        return {ctypes.POINTER(structures[name.group(1)])}
    # Opaque.
    return {
        ctypes.c_void_p
        if name.group(2) == "*"
        else ctypes.POINTER(ctypes.c_void_p)
    }


def members(name):
    """The declarations of the members of a structure in the header."""
    body = re.search(r"struct %s \{(.*?)\n\};" % name, header, re.S).group(1)
    return [line.strip() for line in body.split(";") if line.strip()]


class Header(Case):
    def test_structures_have_the_members_of_the_header(self):
        for name, kind in structures.items():
            if kind is _library.Progress:
                continue  # of functions, which no pattern here can read
            with self.subTest(name):
                declared = members(name)
                self.assertEqual(len(declared), len(kind._fields_))
                for line, (member, ours) in zip(declared, kind._fields_):
                    array = re.fullmatch(r"char (\w+)\[(\d+)\]", line)
                    if array:
                        self.assertEqual(array.group(1), member)
                        self.assertEqual(
                            ours, ctypes.c_char * int(array.group(2))
                        )
                    else:
                        theirs, named = split(line)
                        self.assertEqual(named, member)
                        self.assertIn(ours, expected(theirs), member)

    def test_functions_have_the_types_of_the_header(self):
        declared = {
            name: (result, arguments)
            for result, name, arguments in re.findall(
                r"LMQ_API\s+([\w\s*]+?)(lmq_\w+)\(([^;]*)\);", header
            )
        }
        self.assertGreater(len(declared), 40)
        for name, (result, arguments) in _library.FUNCTIONS.items():
            with self.subTest(name):
                self.assertIn(name, declared)
                wanted_result, wanted = declared[name]
                wanted_result = split(wanted_result.strip() + " x")[0]
                if wanted_result == "void":
                    self.assertIsNone(result)
                else:
                    self.assertIn(result, expected(wanted_result))
                wanted = [
                    split(argument)[0]
                    for argument in wanted.split(",")
                    if argument.strip() != "void"
                ]
                self.assertEqual(len(wanted), len(arguments))
                for theirs, ours in zip(wanted, arguments):
                    self.assertIn(ours, expected(theirs), theirs)

    def test_the_compiler_agrees(self):
        compiler = os.environ.get("CC")
        if not compiler:
            self.skipTest("CC names no compiler")
        lines = ["#include <stddef.h>", '#include "lmquant.h"']

        def holds(what, value):
            lines.append('_Static_assert(%s == %d, "");' % (what, value))

        for name, kind in structures.items():
            whole = "struct " + name
            holds("sizeof(%s)" % whole, ctypes.sizeof(kind))
            for member, _ in kind._fields_:
                field = getattr(kind, member)
                holds("offsetof(%s, %s)" % (whole, member), field.offset)
                holds("sizeof(((%s *)0)->%s)" % (whole, member), field.size)
        for name, value in vars(_library).items():
            if re.fullmatch(r"[A-Z_]+", name) and isinstance(value, int):
                holds("LMQ_" + name, value)
        path = self.folder / "layout.c"
        path.write_text("\n".join(lines) + "\n")
        done = subprocess.run(
            shlex.split(compiler)
            + ["-std=c11", "-fsyntax-only", "-I", str(root), str(path)],
            stderr=subprocess.PIPE,
            universal_newlines=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(len(lines), 150)

    def test_statuses_have_a_class_each(self):
        body = re.search(r"enum lmq_status \{(.*?)\}", header, re.S).group(1)
        names = re.findall(r"LMQ_(\w+)", body)
        ours = [
            name
            for name in vars(_library)
            if name == "OK" or name.startswith("ERR_")
        ]
        self.assertEqual(names, ours)
        from lmquant import _calls

        self.assertEqual(len(_calls._CLASSES), len(names) - 1)

    def test_options_are_typed_under_the_names_of_the_members(self):
        for kind in structures.values():
            if not issubclass(kind, _library.Options):
                continue
            with self.subTest(kind.c_name):
                lists = {
                    "n_" + name
                    for name, of in kind._fields_
                    if of == ctypes.POINTER(ctypes.c_char_p)
                }
                names = [
                    name
                    for name, _ in kind._fields_
                    if name != "size" and name not in lists
                ]
                if kind is _library.ExportOptions:
                    names.remove("to")  # an argument of its own
                if kind is _library.ConvertOptions:
                    names.remove("peers")  # for programs in C
                if kind is _library.CopyOptions:
                    names.remove("shard_size")  # likewise
                typed = getattr(_types, kind.__name__)
                self.assertEqual(list(typed.__annotations__), names)

    def test_versions_are_the_same(self):
        self.assertEqual(lmquant.__version__, lmquant.library_version())


if __name__ == "__main__":
    unittest.main()
