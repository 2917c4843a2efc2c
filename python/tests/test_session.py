"""Token ids to logits: the same bits as the program's, and memory that stays
for as long as somebody looks at it."""

import copy
import gc
import json
import os
import pickle
import shutil
import signal
import subprocess
import threading
import unittest

import numpy as np

from common import Case, builddir, container, fable, run_lmquant, run_python

import lmquant

PROMPT = "Once upon a time"


def expected_logits(path, tokens):
    """What a program in C computes: a row for each token."""
    done = subprocess.run(
        [str(builddir / "tests" / "build" / "eval_logits"), str(path)]
        + [str(token) for token in tokens],
        stdout=subprocess.PIPE,
        check=True,
    )
    return np.frombuffer(done.stdout, np.float32).reshape(len(tokens), -1)


def padded(folder):
    """The bundled model with rows behind its tokens, all likelier than these."""
    shutil.copytree(fable, folder, copy_function=shutil.copyfile)
    config = json.loads((folder / "config.json").read_text())
    config["vocab_size"] *= 2
    (folder / "config.json").write_text(json.dumps(config))
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    start = 8 + int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8:start])
    embedding = header["model.embed_tokens.weight"]
    first, n = embedding["data_offsets"]
    assert first == 0
    for name, tensor in header.items():
        if name != "__metadata__" and tensor is not embedding:
            tensor["data_offsets"] = [at + n for at in tensor["data_offsets"]]
    embedding["data_offsets"] = [0, 2 * n]
    embedding["shape"][0] *= 2
    rows = np.frombuffer(whole, np.float32, n // 4, start)
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    weights.write_bytes(
        len(head).to_bytes(8, "little") + head + rows.tobytes()
        + (2 * rows).tobytes() + whole[start + n :]
    )
    return folder


class Sessions(Case):
    def setUp(self):
        super().setUp()
        self.checkpoint = lmquant.open(container())
        self.tokenizer = self.checkpoint.tokenizer()
        self.ids = self.tokenizer.tokenize(PROMPT)

    def test_all_logits_are_those_of_c(self):
        if not (builddir / "tests" / "build" / "eval_logits").exists():
            self.skipTest("built without tests")
        tokens = self.tokenizer.tokenize(PROMPT * 20)
        wanted = expected_logits(container(), tokens)
        for batch in 0, 1, 7, 64:
            session = self.checkpoint.session(
                batch=batch, all_logits=True, activations="f32"
            )
            rows = [logits.copy() for logits in session.eval_each(tokens)]
            np.testing.assert_array_equal(np.concatenate(rows), wanted)
            self.assertEqual(session.position, len(tokens))
            np.testing.assert_array_equal(session.logits, rows[-1])
            last = session.eval([5])
            self.assertEqual(session.logits.shape, (1, 512))
            np.testing.assert_array_equal(session.logits[0], last)

    def test_one_row_is_kept_unless_all_are_asked_for(self):
        session = self.checkpoint.session()
        self.assertEqual(session.logits.shape, (0, 512))
        last = session.eval(self.ids)
        self.assertEqual(last.shape, (512,))
        self.assertEqual(last.dtype, np.float32)
        np.testing.assert_array_equal(session.logits, [last])
        session.rewind()
        self.assertEqual(session.logits.shape, (0, 512))
        self.assertEqual(session.position, 0)

    def test_logits_are_the_session_s_own_memory(self):
        session = self.checkpoint.session()
        first = session.eval(self.ids)
        kept = first.copy()
        second = session.eval([7])
        self.assertTrue(np.shares_memory(first, second))
        self.assertFalse(np.array_equal(first, kept))
        with self.assertRaises(ValueError):
            first[0] = 0
        with self.assertRaises(ValueError):
            first.flags.writeable = True

    def test_logits_outlive_everything(self):
        session = self.checkpoint.session(all_logits=True)
        last = session.eval(self.ids)
        rows = session.logits
        kept, all_kept = last.copy(), rows.copy()
        session.close()
        self.checkpoint.close()
        del session, self.checkpoint
        gc.collect()
        np.testing.assert_array_equal(last, kept)
        part = rows[2:5, 10:20]
        del rows, last
        gc.collect()
        np.testing.assert_array_equal(part, all_kept[2:5, 10:20])

    def test_memory_is_given_back(self):
        import resource

        if "asan" in os.environ.get("LD_PRELOAD", ""):
            self.skipTest("AddressSanitizer keeps what was freed")

        def most():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        def use():
            session = self.checkpoint.session(context=4096, batch=128)
            logits = session.eval(self.ids)
            session.close()
            return float(logits[0])

        for _ in range(5):
            use()
        before = most()
        for _ in range(100):
            use()
        self.assertLess(most() - before, 20000)  # KiB; a session has 5000

    def test_cutting_does_not_matter(self):
        whole = self.checkpoint.session().eval(self.ids).copy()
        session = self.checkpoint.session()
        for token in self.ids:
            last = session.eval([token])
        np.testing.assert_array_equal(last, whole)
        session.rewind(3)
        np.testing.assert_array_equal(session.eval(self.ids[3:]), whole)

    def test_tokens_may_be_lists_and_arrays(self):
        session = self.checkpoint.session()
        whole = session.eval(self.ids).copy()
        for tokens in (
            tuple(self.ids),
            np.array(self.ids),
            np.array(self.ids, np.int32),
            np.array(self.ids, np.uint16),
            np.repeat(self.ids, 2)[::2],
        ):
            session.rewind()
            np.testing.assert_array_equal(session.eval(tokens), whole)

    def test_tokens_that_are_none_are_refused(self):
        session = self.checkpoint.session()
        session.eval(self.ids)
        for tokens in "abc", [1.0], [None], [[1]], 5, None, ["1"], [True]:
            with self.subTest(tokens):
                self.assertStops(TypeError, "", session.eval, tokens)
        for tokens in [-1], [512], [2**31], [2**32 + 1], [-(2**63)], [2**63]:
            with self.subTest(tokens):
                self.assertStops(lmquant.Error, "", session.eval, tokens)
        self.assertStops(
            lmquant.ArgumentError, "no tokens", session.eval, []
        )
        self.assertEqual(session.position, len(self.ids))

    def test_what_fails_appends_nothing(self):
        session = self.checkpoint.session(batch=4, context=64)
        session.eval(self.ids)
        kept = session.logits.copy()
        error = self.assertStops(
            lmquant.ArgumentError, "do not fit", session.eval, [5] * 60
        )
        self.assertIn("context", error.hint)
        np.testing.assert_array_equal(session.logits, kept)
        self.assertStops(
            lmquant.FormatError, "vocabulary", session.eval, [5] * 9 + [999]
        )
        self.assertEqual(session.position, len(self.ids))
        session.eval([5])
        self.assertEqual(session.position, len(self.ids) + 1)
        steps = session.eval_each([5] * 60)
        self.assertStops(lmquant.ArgumentError, "do not fit", next, steps)

    def test_a_session_that_moves_under_an_iteration_is_told(self):
        session = self.checkpoint.session(batch=2, all_logits=True)
        steps = session.eval_each([5] * 6)
        next(steps)
        session.eval([6])
        self.assertStops(lmquant.BusyError, "moved", next, steps)

    def test_handles_of_another_kind_are_refused(self):
        model = self.checkpoint.model()
        for function, kind, other in (
            (lmquant.Model, "checkpoint", model),
            (lmquant.Model, "checkpoint", str(container())),
            (lmquant.Session, "model", self.checkpoint),
            (lmquant.Session, "model", None),
            (lmquant.Tokenizer, "checkpoint", model),
            (lmquant.Detokenizer, "tokenizer", self.checkpoint),
            (lmquant.Detokenizer, "tokenizer", 5),
        ):
            self.assertStops(TypeError, "expected a " + kind, function, other)
        self.assertStops(TypeError, "", lmquant.inspect, model)

    def test_options_are_refused_as_everywhere(self):
        self.assertStops(TypeError, "contxt", self.checkpoint.session, contxt=1)
        self.assertStops(
            lmquant.ArgumentError, "kv", self.checkpoint.session, kv="q3"
        )
        for context in -1, 2**60, 2**64:
            self.assertStops(
                lmquant.Error, "", self.checkpoint.session, context=context
            )

    def test_sliding_makes_room(self):
        session = self.checkpoint.session(context=64, all_logits=True, batch=9)
        session.eval([5] * 64)
        session.slide()
        self.assertEqual(session.position, 32)
        self.assertEqual(session.logits.shape, (31 % 9 + 1, 512))
        session.rewind()
        self.assertStops(lmquant.ArgumentError, "forget", session.slide)
        self.assertStops(lmquant.ArgumentError, "", session.slide, -1)
        self.assertStops(lmquant.ArgumentError, "", session.rewind, -1)
        self.assertStops(TypeError, "", session.rewind, 1.5)
        self.assertStops(TypeError, "", session.slide, "4")


class Generating(Case):
    def setUp(self):
        super().setUp()
        self.checkpoint = lmquant.open(container())

    def test_it_makes_what_the_program_makes(self):
        for sampling, options in (
            ({}, ["--temp=0"]),
            (
                {
                    "temperature": 0.9,
                    "top_k": 50,
                    "top_p": 0.9,
                    "min_p": 0.02,
                    "repeat_penalty": 1.1,
                    "seed": 7,
                },
                ["--temp=0.9", "--top-k=50", "--top-p=0.9", "--min-p=0.02",
                 "--repeat-penalty=1.1", "--seed=7"],
            ),
        ):
            said = json.loads(
                run_lmquant(
                    "run", "--json", "-n", "300", "--ctx=96", *options,
                    container(), PROMPT
                )
            )
            with self.checkpoint.tokenizer() as tokenizer:
                session = self.checkpoint.session(context=96)
                made = list(
                    session.generate(
                        tokenizer.tokenize(PROMPT, special=True), 300,
                        tokenizer=tokenizer, **sampling
                    )
                )
            self.assertEqual(made, said["tokens"])
            text = "".join(
                self.checkpoint.generate(
                    PROMPT, 300, session={"context": 96}, **sampling
                )
            )
            self.assertEqual(text, said["text"])

    def test_rows_behind_the_last_token_are_never_drawn(self):
        made = []
        for path in fable, padded(self.folder / "padded"):
            with lmquant.open(path) as checkpoint:
                made.append("".join(checkpoint.generate(PROMPT, 20)))
        self.assertEqual(made[1], made[0])

    def test_none_are_none(self):
        self.assertEqual(list(self.checkpoint.generate(PROMPT, 0)), [])

    def test_an_iteration_may_be_left(self):
        for piece in self.checkpoint.generate(PROMPT):
            break
        self.assertTrue(piece)
        self.checkpoint.close()

    def test_a_closed_object_opens_no_block(self):
        sampler = lmquant.Sampler(4)
        sampler.close()
        with self.assertRaises(lmquant.ClosedError):
            with sampler:
                self.fail("it is closed")

    def test_samplers_are_picky(self):
        sampler = lmquant.Sampler(4)
        self.assertEqual(sampler.pick([0, 3, 1, 2]), 1)
        self.assertEqual(sampler.pick([float("nan")] * 4), 0)
        sampler.accept(2)
        sampler.accept(-5)
        sampler.accept(99)
        for logits in [], [0] * 3, [0] * 5, [[0] * 4], 7:
            self.assertStops(
                lmquant.ArgumentError, "shape", sampler.pick, logits
            )
        self.assertStops(lmquant.ArgumentError, "", lmquant.Sampler, 0)
        self.assertStops(lmquant.ArgumentError, "", lmquant.Sampler, -1)
        self.assertStops(
            lmquant.ArgumentError,
            "temperature is -1",
            lmquant.Sampler,
            4,
            temperature=-1,
        )
        sampler.close()
        self.assertStops(lmquant.ClosedError, "", sampler.pick, [0] * 4)


class Lives(Case):
    def test_use_after_close_is_an_exception(self):
        checkpoint = lmquant.open(container())
        tokenizer = checkpoint.tokenizer()
        model = checkpoint.model()
        session = model.session()
        detokenizer = lmquant.Detokenizer(tokenizer)
        for handle in checkpoint, tokenizer, model, session, detokenizer:
            self.assertFalse(handle.is_closed)
            handle.close()
            handle.close()
            self.assertTrue(handle.is_closed)
        for use in (
            checkpoint.tokenizer,
            checkpoint.model,
            checkpoint.session,
            lambda: next(checkpoint.generate("x")),
            lambda: lmquant.inspect(checkpoint),
            lambda: lmquant.validate(checkpoint, checkpoint, texts="x"),
            lambda: model.vocabulary,
            lambda: model.context,
            model.session,
            lambda: session.position,
            lambda: session.logits,
            lambda: session.eval([1]),
            session.rewind,
            session.slide,
            lambda: tokenizer.kind,
            lambda: len(tokenizer),
            lambda: tokenizer.tokenize("x"),
            lambda: tokenizer.detokenize([1]),
            lambda: tokenizer.token(1),
            lambda: tokenizer.ends(1),
            lambda: lmquant.Detokenizer(tokenizer),
            lambda: detokenizer.next(1),
            detokenizer.end,
        ):
            self.assertStops(lmquant.ClosedError, "closed", use)

    def test_what_was_made_keeps_what_it_was_made_from(self):
        for order in (0, 1, 2), (2, 1, 0), (1, 0, 2):
            checkpoint = lmquant.open(container())
            model = checkpoint.model()
            session = model.session()
            handles = [checkpoint, model, session]
            session.eval([1, 2])
            for i in order[:2]:
                handles[i].close()
                if i != 2 and not session.is_closed:
                    session.eval([3])
            handles[order[2]].close()

    def test_collection_frees_in_any_order(self):
        for _ in range(5):
            checkpoint = lmquant.open(container())
            model = checkpoint.model()
            session = model.session()
            # A circle: the collector calls finalizers as it likes.
            checkpoint.other, model.other, session.other = (
                session, checkpoint, model,
            )
            session.logits_seen = session.eval([1, 2])
            del checkpoint, model, session
            gc.collect()

    def test_with_closes(self):
        with lmquant.open(container()) as checkpoint:
            with checkpoint.session() as session:
                session.eval([1])
            self.assertTrue(session.is_closed)
        self.assertIn("closed", repr(checkpoint))
        with self.assertRaises(ZeroDivisionError):
            with lmquant.open(container()) as checkpoint:
                1 / 0
        self.assertTrue(checkpoint.is_closed)

    def test_handles_are_not_copied(self):
        checkpoint = lmquant.open(container())
        for copies in copy.copy, copy.deepcopy, pickle.dumps:
            self.assertStops(TypeError, "copied", copies, checkpoint)

    def test_open_things_at_the_end_of_the_interpreter_do_no_harm(self):
        status, out, err = run_python(
            "import lmquant, threading\n"
            "c = lmquant.open(%r); s = c.session(); x = s.eval([1, 2])\n"
            "def work():\n"
            "    t = c.session()\n"
            "    while True:\n"
            "        t.rewind(); t.eval([5] * 200)\n"
            "threading.Thread(target=work, daemon=True).start()\n"
            "import time; time.sleep(0.2); print(x.shape)" % str(container())
        )
        self.assertEqual((status, out.strip(), err), (0, "(512,)", ""))


class Threads(Case):
    def setUp(self):
        super().setUp()
        # Ignored in what a shell has put into the background.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)

    def test_one_session_used_twice_at_once_is_an_exception(self):
        session = lmquant.open(container()).session()
        busy, wrong = [], []
        start = threading.Barrier(4)

        def work():
            start.wait()
            for _ in range(30):
                try:
                    session.rewind()
                    session.eval([5] * 100)
                except lmquant.BusyError:
                    busy.append(1)
                except lmquant.Error as error:
                    wrong.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # Whoever got in between made no more harm than more tokens.
        self.assertTrue(
            all("do not fit" in str(error) for error in wrong), wrong
        )
        self.assertTrue(busy)
        session.rewind()
        session.eval([1])

    def test_sessions_of_one_model_run_at_once(self):
        model = lmquant.open(container()).model()
        tokens = list(range(100, 200))
        wanted = model.session(threads=1).eval(tokens).copy()
        found = []

        def work():
            session = model.session(threads=1)
            for _ in range(5):
                session.rewind()
                found.append(session.eval(tokens).copy())

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(found), 20)
        for logits in found:
            np.testing.assert_array_equal(logits, wanted)

    def test_closing_while_another_thread_is_at_work_waits_for_it(self):
        for _ in range(10):
            session = lmquant.open(container()).session()
            started = threading.Event()
            ended = []

            def work():
                try:
                    while True:
                        session.rewind()
                        started.set()
                        session.eval([5] * 100)
                except lmquant.ClosedError:
                    ended.append(True)

            thread = threading.Thread(target=work)
            thread.start()
            started.wait()
            session.close()
            thread.join()
            self.assertEqual(ended, [True])

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_a_child_uses_what_it_inherits(self):
        checkpoint = lmquant.open(container())
        session = checkpoint.session()
        wanted = session.eval([5, 6, 7]).copy()
        session.rewind()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            try:
                same = np.array_equal(session.eval([5, 6, 7]), wanted)
                own = checkpoint.session().eval([5, 6, 7])
                session.close()
                checkpoint.close()
                os._exit(0 if same and np.array_equal(own, wanted) else 3)
            except BaseException:
                os._exit(4)
        _, status = os.waitpid(child, 0)
        self.assertEqual(status, 0)
        np.testing.assert_array_equal(session.eval([5, 6, 7]), wanted)

    def test_an_interruption_between_batches_appends_nothing(self):
        session = lmquant.open(fable).session(batch=1, context=256)
        timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            while True:
                session.eval([5] * 256)
                session.rewind()
        timer.join()
        self.assertIn(session.position, (0, 256))
        session.rewind()
        session.eval([1])


if __name__ == "__main__":
    unittest.main()
