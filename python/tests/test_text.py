"""Text to ids and back."""

import subprocess
import threading
import unittest

import numpy as np

from common import Case, builddir, container, fable, files, text

import lmquant


class Text(Case):
    def setUp(self):
        super().setUp()
        self.tokenizer = lmquant.open(container()).tokenizer()

    def test_ids_are_those_of_the_program(self):
        sample = text.read_text()[:5000]
        path = self.folder / "sample.txt"
        path.write_text(sample)
        done = subprocess.run(
            [str(builddir / "lmquant"), "tokenize", "--ids", str(container())],
            input=sample.encode(), stdout=subprocess.PIPE, check=True,
        )
        ids = self.tokenizer.tokenize(sample)
        self.assertEqual(ids, [int(word) for word in done.stdout.split()])
        self.assertEqual(self.tokenizer.detokenize(ids), sample)
        self.assertEqual(self.tokenizer.detokenize_bytes(ids), sample.encode())

    def test_flags_say_what_becomes_of_special_tokens(self):
        bos = self.tokenizer.tokenize("")
        self.assertEqual(bos, [1])
        self.assertEqual(self.tokenizer.tokenize("", plain=True), [])
        self.assertIn(2, self.tokenizer.tokenize("a</s>", special=True))
        self.assertNotIn(2, self.tokenizer.tokenize("a</s>"))
        self.assertEqual(self.tokenizer.detokenize([1, 2], special=True), "<s></s>")
        self.assertEqual(self.tokenizer.detokenize([1, 2]), "")

    def test_any_bytes_are_text(self):
        for given in b"\xff\0\x80", "\0", "ë", "\U0001f600", b"":
            ids = self.tokenizer.tokenize(given, plain=True)
            encoded = given if isinstance(given, bytes) else given.encode()
            self.assertEqual(self.tokenizer.detokenize_bytes(ids), encoded)
        ids = self.tokenizer.tokenize(b"\xff", plain=True)
        self.assertEqual(self.tokenizer.detokenize(ids), "\ufffd")

    def test_tokens_have_pieces(self):
        self.assertEqual(len(self.tokenizer), 512)
        self.assertEqual(self.tokenizer.token(1), b"<s>")
        self.assertTrue(self.tokenizer.ends(2))
        self.assertFalse(self.tokenizer.ends(5))
        self.assertFalse(self.tokenizer.ends(-1))
        for token in -1, 512, 2**31 - 1:
            self.assertStops(
                lmquant.ArgumentError, "", self.tokenizer.token, token
            )
        for token in 2**31, -(2**31) - 1, 2**64:
            self.assertStops(
                lmquant.Error, "", self.tokenizer.token, token
            )
        self.assertStops(TypeError, "", self.tokenizer.token, "a")
        self.assertStops(TypeError, "", self.tokenizer.ends, None)

    def test_wrong_types_are_refused(self):
        for given in None, 5, ["a"], bytearray(b"a"):
            self.assertStops(TypeError, "", self.tokenizer.tokenize, given)
        self.assertStops(
            UnicodeEncodeError, "", self.tokenizer.tokenize, "\ud800"
        )
        for ids in "abc", [1.5], [None], 5:
            self.assertStops(TypeError, "", self.tokenizer.detokenize, ids)
        for ids in [-1], [512]:
            self.assertStops(
                lmquant.ArgumentError, "", self.tokenizer.detokenize, ids
            )
        self.assertEqual(self.tokenizer.detokenize([]), "")
        self.assertEqual(self.tokenizer.detokenize(np.array([], int)), "")

    def test_whole_numbers_of_any_kind_are_ids(self):
        wanted = self.tokenizer.detokenize([300, 308])
        for ids in (
            (300, 308), [np.uint64(300), 308],
            [np.int8(1), np.uint64(300), 308], np.array([300, 308], object),
            np.array([300, 308], np.uint64), np.array([300, 308], ">i2"),
            np.array([300, 0, 308])[::2],
        ):
            self.assertEqual(self.tokenizer.detokenize(ids), wanted, ids)
        for ids in (
            [2**31], [2**64], [-(2**31) - 1], [np.uint64(2**63), 5],
            np.array([2**40], object), np.array([2**32 + 5]),
        ):
            self.assertStops(
                lmquant.ArgumentError, "a token id is out of range",
                self.tokenizer.detokenize, ids,
            )
        for ids, kind in (
            ([1.5], "float64"), (np.array([1.0]), "float64"),
            ([None], "object"), (np.array([1, 2.0], object), "object"),
            ([True], "bool"),
        ):
            self.assertStops(
                TypeError, "token ids are " + kind, self.tokenizer.detokenize,
                ids,
            )

    def test_ids_are_copied_before_they_are_checked(self):
        for given in np.array([5, 6], np.int32), np.array([5, 6], object):
            ids = lmquant._text.to_ids(given)
            self.assertFalse(np.shares_memory(ids, given))
            self.assertEqual(ids.dtype, np.int32)

    def test_pieces_join_to_the_text(self):
        sample = "Zoé and Renée \U0001f600 went home."
        detokenizer = lmquant.Detokenizer(self.tokenizer)
        pieces = [
            detokenizer.next(token)
            for token in self.tokenizer.tokenize(sample)
        ]
        pieces.append(detokenizer.end())
        self.assertEqual("".join(pieces), sample)
        for token in -1, 512, 2**31:
            self.assertStops(lmquant.Error, "", detokenizer.next, token)
        self.assertStops(TypeError, "token ids are", detokenizer.next, None)

    def test_files_have_tokenizers_too(self):
        for path, kind in (
            (fable / "tokenizer.json", "Hugging Face"),
            (fable / "tokenizer.bin", "llama2.c"),
            (fable, "Hugging Face"),
        ):
            with lmquant.Tokenizer(path) as tokenizer:
                self.assertEqual(tokenizer.kind, kind)
        with lmquant.open(fable) as checkpoint:
            with lmquant.Tokenizer(checkpoint) as tokenizer:
                self.assertEqual(tokenizer.kind, "Hugging Face")
            self.assertStops(
                TypeError, "options", lmquant.Tokenizer, checkpoint, config="x"
            )
        self.assertStops(
            lmquant.SystemRefusedError, "", lmquant.Tokenizer, "/nowhere"
        )
        self.assertStops(
            lmquant.FormatError, "", lmquant.Tokenizer,
            files / "good-plain.safetensors",
        )

    def test_threads_share_one(self):
        sample = text.read_text()[:20000]
        wanted = self.tokenizer.tokenize(sample)
        found = []
        threads = [
            threading.Thread(
                target=lambda: found.append(self.tokenizer.tokenize(sample))
            )
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [wanted] * 4)

if __name__ == "__main__":
    unittest.main()
