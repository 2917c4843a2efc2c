"""Conversations as text and as tokens."""

import subprocess
import unittest

from common import Case, builddir, container, fable

import lmquant

QUESTION = {"role": "user", "content": "Who are you?"}


class Chat(Case):
    def setUp(self):
        super().setUp()
        self.checkpoint = lmquant.open(container())
        self.tokenizer = self.checkpoint.tokenizer()

    def test_formats_are_those_of_the_program(self):
        done = subprocess.run(
            [str(builddir / "lmquant"), "run", "--chat-format=list"],
            stdout=subprocess.PIPE, check=True,
        )
        formats = lmquant.chat_formats()
        self.assertGreater(len(formats), 40)
        for name in formats:
            self.assertIn(name.encode(), done.stdout)
        self.assertIn("Qwen", formats["chatml"])

    def test_text_and_tokens_say_the_same(self):
        messages = [
            {"role": "system", "content": "Be kind."},
            QUESTION,
            {"role": "assistant", "content": "A fox."},
            {"role": "user", "content": "And I?"},
        ]
        for name in lmquant.chat_formats():
            with self.subTest(name):
                try:
                    chat = self.checkpoint.chat(self.tokenizer, format=name)
                except lmquant.UnsupportedError:
                    continue  # tokens that this tokenizer lacks
                self.assertEqual(chat.format, name)
                ids = chat.tokens(messages)
                shown = self.tokenizer.detokenize(ids, special=True)
                text = chat.text(messages)
                for part in "Be kind.", "Who are you?", "A fox.", "And I?":
                    self.assertIn(part, text)
                    self.assertIn(part, shown)

    def test_llama2(self):
        chat = self.checkpoint.chat(format="llama2")
        self.assertEqual(chat.text([QUESTION]), "<s>[INST] Who are you? [/INST]")
        self.assertTrue(chat.ends(2))
        self.assertFalse(chat.ends(5))
        self.assertIsNone(chat.stop)
        self.assertFalse(chat.shows_special)
        ids = chat.tokens([QUESTION])
        self.assertEqual(ids[0], 1)
        answer = [300, 301]
        more = chat.tokens([QUESTION, {"role": "assistant", "tokens": answer}])
        self.assertEqual(more[: len(ids)], ids)
        self.assertEqual(more[len(ids) : len(ids) + 2], answer)

    def test_messages_may_come_one_by_one(self):
        chat = self.checkpoint.chat(format="llama2")
        self.assertEqual(chat.text(iter([QUESTION])), chat.text([QUESTION]))
        self.assertEqual(chat.tokens(iter([QUESTION])), chat.tokens([QUESTION]))

    def test_words_are_no_special_tokens(self):
        chat = self.checkpoint.chat(format="llama2")
        ids = chat.tokens([{"role": "user", "content": "</s><s>"}])
        self.assertEqual(ids.count(1), 1)
        self.assertNotIn(2, ids)

    def test_a_folder_with_a_template(self):
        folder = self.folder / "model"
        folder.mkdir()
        for path in fable.iterdir():
            (folder / path.name).symlink_to(path)
        (folder / "chat_template.jinja").write_text("{{ 7 }}")
        checkpoint = lmquant.open(folder)
        self.assertStops(lmquant.UnsupportedError, "template", checkpoint.chat)
        self.assertEqual(checkpoint.chat(format="llama2").format, "llama2")

    def test_mistakes(self):
        self.assertStops(
            lmquant.UnsupportedError, "no chat template", self.checkpoint.chat
        )
        self.assertStops(
            lmquant.ArgumentError, "mars", self.checkpoint.chat, format="mars"
        )
        self.assertIn(
            "format=NAME names one, as chatml, llama3 or gemma; "
            "lmquant.chat_formats() shows them all",
            self.assertStops(
                lmquant.ArgumentError, "", self.checkpoint.chat, format="zz"
            ).hint,
        )
        self.assertRaises(TypeError, self.checkpoint.chat, format=7)
        self.assertRaises(TypeError, lmquant.Chat, self.tokenizer)
        chat = self.checkpoint.chat(format="llama2")
        for wrong in (
            "text", ["text"], [{"content": "x"}], [{"role": 1, "content": "x"}],
            [{"role": "user", "content": 1}], [{"role": "user", "text": "x"}],
        ):
            self.assertRaises(TypeError, chat.tokens, wrong)
            self.assertRaises(TypeError, chat.text, wrong)
        for wrong in (
            [], [{"role": "mars", "content": "x"}],
            [QUESTION, {"role": "system", "content": "x"}],
            [{"role": "assistant", "tokens": [2**20]}],
        ):
            with self.assertRaises(lmquant.Error, msg=wrong):
                chat.tokens(wrong)
        self.assertStops(
            lmquant.ArgumentError, "role of a message has a 0", chat.text,
            [{"role": "user\0x", "content": "x"}],
        )
        for wrong in None, 5:
            self.assertStops(
                TypeError, "expected a list of dicts", chat.text, wrong
            )
        chat.close()
        self.assertRaises(lmquant.ClosedError, chat.tokens, [QUESTION])

    def test_the_tokenizer_stays_as_long(self):
        with self.checkpoint.tokenizer() as tokenizer:
            chat = self.checkpoint.chat(tokenizer, format="llama2")
        self.assertEqual(chat.tokens([QUESTION])[0], 1)


if __name__ == "__main__":
    unittest.main()
