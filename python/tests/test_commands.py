"""Converting, validating and so on: reports, options, errors, callbacks."""

import os
import pickle
import shutil
import signal
import threading
import unittest

import numpy

from common import Case, container, fable, files, here, run_lmquant, text

import lmquant


class Commands(Case):
    def test_inspect_finds_what_the_program_finds(self):
        import json

        found = lmquant.inspect(fable, has_tensors=True)
        said = json.loads(run_lmquant("inspect", "--json", "--tensors", fable))
        self.assertEqual(found, said)
        with lmquant.open(fable) as checkpoint:
            self.assertEqual(lmquant.inspect(checkpoint, has_tensors=True), found)

    def test_convert_writes_what_the_program_writes(self):
        output = self.folder / "a.lmq"
        report = lmquant.convert(fable, output, group_size=32, scales="f32")
        self.assertEqual(report["totals"]["output_bytes"], output.stat().st_size)
        other = self.folder / "b.lmq"
        run_lmquant(
            "convert", "-q", "--group-size=32", "--scales=f32", fable, other
        )
        self.assertEqual(output.read_bytes(), other.read_bytes())

    def test_a_dry_run_writes_nothing(self):
        output = self.folder / "a.lmq"
        report = lmquant.convert(fable, output, is_dry_run=True)
        self.assertGreater(report["totals"]["output_bytes"], 0)
        self.assertFalse(output.exists())

    def test_paths_may_be_strings_bytes_and_paths(self):
        for path in str(fable), os.fsencode(fable), fable:
            self.assertEqual(lmquant.inspect(path)["parameters"], 378720)

    def test_paths_need_not_be_text(self):
        output = os.fsencode(self.folder) + b"/\xff.lmq"
        lmquant.convert(fable, output)
        with lmquant.open(os.fsdecode(output)) as checkpoint:
            self.assertEqual(os.fsencode(checkpoint.path), output)
        error = self.assertStops(
            lmquant.SystemRefusedError, "", lmquant.open, output + b"x"
        )
        self.assertTrue(error.path.endswith("/\\xff.lmqx"), error.path)

    def test_sets_are_split_and_joined(self):
        folder, one = self.folder / "set", self.folder / "one.lmq"
        folder.mkdir()
        report = lmquant.split(container(), folder, 150000)
        members = sorted(folder.iterdir())
        self.assertEqual(len(report["files"]), len(members))
        self.assertGreater(len(members), 1)
        lmquant.join(members[0], one)
        self.assertEqual(one.read_bytes(), container().read_bytes())
        self.assertStops(
            lmquant.SystemRefusedError, "exists", lmquant.join, members[0], one
        )
        with self.assertRaisesRegex(lmquant.ArgumentError, "shard_size is 0"):
            lmquant.split(container(), folder, 0)
        with self.assertRaises(TypeError):
            lmquant.join(members[0], one, shard_size=5)

    def test_a_set_written_in_parts_is_sealed(self):
        whole, parts = self.folder / "whole", self.folder / "parts"
        for folder in whole, parts:
            folder.mkdir()
        lmquant.convert(fable, whole / "set.lmq", n_parts=3)
        for part in 2, 1, 3:
            lmquant.convert(fable, parts / "set.lmq", n_parts=3, part=part)
        report = lmquant.seal(parts, source=fable, open={})
        self.assertEqual(len(report["files"]), 3)
        for path in whole.iterdir():
            self.assertEqual(
                path.read_bytes(), (parts / path.name).read_bytes()
            )

    def test_export_goes_out_and_back(self):
        gguf = self.folder / "a.gguf"
        lmquant.export(container(), gguf, "gguf")
        report = lmquant.diff(container(), gguf, gates=["weights.equal>=1"])
        self.assertEqual([gate["held"] for gate in report["gates"]], [True])
        self.assertStops(
            lmquant.ArgumentError,
            "expected",
            lmquant.export,
            container(),
            self.folder / "b",
            "nothing",
        )

    def test_diff_says_whether_gates_hold(self):
        report = lmquant.diff(fable, container(), gates="weights.equal>=1")
        self.assertFalse(report["gates"][0]["held"])
        self.assertNotIn("gates", lmquant.diff(fable, fable))
        self.assertStops(
            lmquant.ArgumentError, "nonsense", lmquant.diff, fable, fable,
            gates=["nonsense"],
        )

    def test_verify_names_what_is_damaged(self):
        self.assertTrue(lmquant.verify(container()))
        broken = self.folder / "broken.lmq"
        data = bytearray(container().read_bytes())
        data[len(data) // 2] ^= 1
        broken.write_bytes(data)
        error = self.assertStops(lmquant.FormatError, "", lmquant.verify, broken)
        self.assertEqual(error.path, str(broken))
        self.assertIsInstance(error.report, dict)
        self.assertStops(
            lmquant.FormatError, "", lmquant.verify, broken, alone=True
        )
        self.assertIsNone(
            self.assertStops(
                lmquant.SystemRefusedError, "", lmquant.verify, "/nowhere"
            ).report
        )

    def test_bench_measures(self):
        report = lmquant.bench(
            container(), n_prefill=8, n_decode=2, rounds=1,
            session={"threads": 1},
        )
        self.assertGreater(report["decode"]["tokens_per_s"], 0)


class Validating(Case):
    options = {"texts": [text], "max_tokens": 1000, "session": {"context": 128}}

    def test_one_model(self):
        report = lmquant.validate(
            fable, container(), gates=["kld.mean<=1e-9", "kld.mean<=1"],
            **self.options
        )
        self.assertEqual(report["ctx"], 128)
        self.assertEqual([g["held"] for g in report["gates"]], [False, True])
        self.assertGreater(report["kld"]["mean"], 0)

    def test_several_models_have_the_figures_that_each_has_alone(self):
        with lmquant.open(fable) as reference:
            alone = lmquant.validate(reference, container(), **self.options)
            report = lmquant.validate(
                reference, [container(), reference], **self.options
            )
        self.assertEqual(len(report["models"]), 2)
        self.assertEqual(report["models"][0]["kld"], alone["kld"])
        self.assertEqual(report["models"][1]["kld"]["mean"], 0)

    def test_no_model_is_an_error(self):
        self.assertStops(
            lmquant.ArgumentError, "", lmquant.validate, fable, [],
            **self.options
        )

    def test_a_task_is_answered_as_lm_eval_scores_it(self):
        task = here.parent / "examples" / "fables" / "fables.jsonl"
        wide = self.folder / "wide.lmq"
        lmquant.convert(fable, wide, group_size=64)
        report = lmquant.validate(
            fable, wide, texts=text, max_tokens=500, task=task
        )
        found = report["task"]
        self.assertEqual(found["questions"], 217)
        self.assertAlmostEqual(found["reference"]["accuracy"], 212 / 217, 6)
        self.assertAlmostEqual(found["model"]["accuracy"], 211 / 217, 6)
        self.assertEqual(found["flips"]["lost"], 1)
        self.assertEqual(found["flips"]["gained"], 0)

    def test_a_page_is_written(self):
        page = self.folder / "page.html"
        lmquant.validate(fable, container(), page=page, **self.options)
        self.assertIn("<html", page.read_text())
        self.assertStops(
            lmquant.SystemRefusedError, "exists", lmquant.validate, fable,
            container(), page=page, **self.options
        )
        lmquant.validate(
            fable, container(), page=page, replaces=True, **self.options
        )

    def test_stopping_leaves_what_was_done(self):
        report = lmquant.validate(
            fable, container(), texts=text, session={"context": 32},
            memory=20_000_000,
            progress=lambda stage, done, total: done * 2 < total,
        )
        self.assertEqual(report["verdict"]["result"], "PARTIAL")

    def test_errors_name_the_option(self):
        error = self.assertStops(
            lmquant.ArgumentError, "score", lmquant.validate, fable,
            container(), **{**self.options, "score": "x"}
        )
        self.assertEqual(error.option, "score")
        self.assertStops(
            lmquant.SystemRefusedError, "cannot open", lmquant.validate,
            fable, container(), texts="/nowhere.txt",
        )


class Planning(Case):
    options = {"texts": [text], "max_tokens": 500, "session": {"context": 128}}

    def test_a_plan_keeps_its_word(self):
        recipe, output = self.folder / "r.yaml", self.folder / "a.lmq"
        page = self.folder / "page.html"
        report = lmquant.plan(
            fable, recipe, target_size=340_000, page=page, **self.options
        )
        self.assertTrue(recipe.read_text().endswith(report["recipe"]))
        self.assertIn("<html", page.read_text())
        lmquant.convert(fable, output, recipe=recipe)
        self.assertEqual(report["prediction"]["bytes"], output.stat().st_size)
        self.assertLessEqual(output.stat().st_size, 340_000)

    def test_nothing_need_be_written(self):
        report = lmquant.plan(fable, target_bits=6, **self.options)
        self.assertIsNone(report["output"])
        self.assertLessEqual(report["prediction"]["bits_per_weight"], 6)

    def test_parts_make_the_same_plan(self):
        names = [self.folder / name for name in ("1.json", "2.json")]
        for i, name in enumerate(names):
            lmquant.plan(
                fable, part=i + 1, n_parts=2, page=name, **self.options
            )
        for measured in (names, [name.read_text() for name in names]):
            report = lmquant.plan(
                fable,
                target_bits=6,
                measured=measured,
                measured_are_texts=measured is not names,
                **self.options
            )
            alone = lmquant.plan(fable, target_bits=6, **self.options)
            self.assertEqual(report["tensors"], alone["tensors"])
        self.assertStops(
            lmquant.FormatError, "1 of 2 parts is missing: 1", lmquant.plan,
            fable, target_bits=6, measured=names[1], **self.options
        )

    def test_what_cannot_be_met_is_an_error(self):
        error = self.assertStops(
            lmquant.ArgumentError, "the least that can be had is", lmquant.plan,
            fable, target_bits=1, **self.options
        )
        self.assertEqual(error.option, "target_bits")
        self.assertStops(
            lmquant.ArgumentError, "there is no target", lmquant.plan, fable,
            **self.options
        )

    def test_it_can_be_stopped(self):
        self.assertStops(
            lmquant.CancelledError, "", lmquant.plan, fable,
            self.folder / "r.yaml", target_bits=6,
            progress=lambda stage, done, total: False, **self.options
        )
        self.assertEqual(list(self.folder.iterdir()), [])


class Options(Case):
    def test_unknown_ones_are_refused_with_the_nearest(self):
        self.assertStops(
            TypeError, "'group_size'", lmquant.convert, fable, "x", groupsize=1
        )
        self.assertStops(TypeError, "only ", lmquant.inspect, fable, zzz=1)
        for name in "size", "n_texts", "n_gates", "__class__", "":
            self.assertStops(
                TypeError, "has no option", lmquant.validate, fable, fable,
                **{name: 1}
            )
        self.assertStops(
            TypeError, "convert has no option 'peers'", lmquant.convert, fable,
            self.folder / "x", peers=True,
        )
        self.assertStops(
            TypeError, "session has no option", lmquant.validate, fable, fable,
            session={"nothing": 1},
        )

    def test_what_is_no_model_is_named(self):
        for wrong in None, 5:
            self.assertStops(
                TypeError, "the judged model is", lmquant.validate, fable, wrong
            )
            self.assertStops(
                TypeError, "the path is .*, expected", lmquant.open, wrong
            )

    def test_wrong_types_are_refused(self):
        bad = self.folder / "bad.lmq"
        for name, value in (
            ("group_size", "64"),
            ("group_size", 64.0),
            ("scales", 16),
            ("scales", ["f16"]),
            ("replaces", "yes"),
            ("threads", []),
        ):
            with self.subTest(name, value=value):
                self.assertStops(
                    TypeError, name, lmquant.convert, fable, bad,
                    **{name: value}
                )
        self.assertFalse(bad.exists())
        self.assertStops(
            TypeError, "rope_theta", lmquant.open, fable, rope_theta="1"
        )
        for value in 5, [5], [None]:
            self.assertStops(
                TypeError, "texts", lmquant.validate, fable, fable, texts=value
            )
        self.assertStops(
            TypeError, "session", lmquant.validate, fable, fable, session=5
        )
        for path in None, 5, 1.5, [str(fable)]:
            self.assertStops(TypeError, "", lmquant.open, path)
            self.assertStops(TypeError, "", lmquant.inspect, path)
            self.assertStops(TypeError, "", lmquant.verify, path)
            self.assertStops(TypeError, "", lmquant.convert, fable, path)
        self.assertStops(TypeError, "", lmquant.validate, fable, 5)
        self.assertStops(TypeError, "", lmquant.validate, fable, [5])

    def test_values_out_of_range_are_refused(self):
        for name, value in (
            ("group_size", -1),
            ("group_size", 2**32 + 64),
            ("group_size", 63),
            ("threads", 2**31),
            ("threads", 2**64 + 1),
            ("shard_size", -1),
            ("shard_size", 2**64),
            ("scales", "f16\0"),
            ("scales", "f17"),
            ("scales", ""),
            ("layout", "x" * 100000),
        ):
            with self.subTest(name, value=value):
                error = self.assertStops(
                    lmquant.ArgumentError, "", lmquant.convert, fable,
                    self.folder / "x.lmq", **{name: value}
                )
                self.assertIsInstance(error, ValueError)
        self.assertStops(lmquant.ArgumentError, "0 in it", lmquant.open, "a\0b")

    def test_none_is_the_default_and_numpy_has_numbers(self):
        output = self.folder / "a.lmq"
        lmquant.convert(
            fable, output, group_size=numpy.int64(32), scales=None,
            has_digests=numpy.bool_(False), threads=None,
        )
        self.assertEqual(output.read_bytes(), container().read_bytes())


class Errors(Case):
    def test_each_has_message_hint_and_the_class_of_its_status(self):
        error = self.assertStops(
            lmquant.SystemRefusedError, "cannot open", lmquant.open, "/nowhere"
        )
        self.assertIsInstance(error, OSError)
        self.assertIsInstance(error, lmquant.Error)
        self.assertEqual(error.path, "/nowhere")
        self.assertTrue(str(error).startswith("/nowhere: "))
        error = self.assertStops(
            lmquant.ArgumentError, "", lmquant.convert, fable,
            self.folder / "x", method="serch",
        )
        self.assertEqual(error.option, "method")
        self.assertStops(
            lmquant.NonFiniteError, "NaN", lmquant.convert,
            files / "bad-nan.safetensors", self.folder / "x.lmq",
        )
        error = self.assertStops(
            lmquant.SystemRefusedError, "exists", lmquant.convert, fable,
            container(),
        )
        self.assertIn("\nhint: replaces=True replaces it", str(error))
        weights = self.folder / "weights.safetensors"
        weights.write_bytes((files / "good-escapes-in-name.safetensors").read_bytes())
        error = self.assertStops(
            lmquant.Error, "tokenizer", lmquant.open(weights).tokenizer
        )
        self.assertIn("tokenizer=FILE", error.hint)

    def test_hints_are_in_the_words_of_the_module(self):
        error = self.assertStops(
            lmquant.FormatError, "no parts", lmquant.seal, self.folder
        )
        self.assertIn(
            "lmquant.convert(part=1, n_parts=N) writes the first", error.hint
        )
        error = self.assertStops(
            lmquant.ArgumentError, "there is no text", lmquant.validate,
            fable, container(),
        )
        self.assertEqual(error.hint, "texts=FILE names one")
        error = self.assertStops(
            lmquant.ArgumentError, "there is no text", lmquant.plan, fable,
            target_bits=8,
        )
        self.assertEqual(error.hint, "texts=FILE names one")

    def test_hostile_files_are_exceptions(self):
        n = 0
        for path in sorted(files.glob("bad-*")):
            try:
                with lmquant.open(path) as checkpoint:
                    checkpoint.session().close()
            except lmquant.Error as error:
                self.assertTrue(error.message)
                n += 1
        self.assertGreater(n, 50)

    def test_they_go_through_pickle(self):
        error = self.assertStops(
            lmquant.SystemRefusedError, "", lmquant.open, "/nowhere"
        )
        again = pickle.loads(pickle.dumps(error))
        self.assertIs(type(again), type(error))
        self.assertEqual(str(again), str(error))

    def test_a_file_that_vanishes_is_an_error(self):
        gone = self.folder / "gone"
        shutil.copytree(fable, gone)
        checkpoint = lmquant.open(gone)
        shutil.rmtree(gone)
        # Mapped, or not looked at yet: what it needs may still be there.
        try:
            lmquant.convert(checkpoint, self.folder / "x.lmq")
        except lmquant.Error:
            self.assertFalse((self.folder / "x.lmq").exists())
        checkpoint.close()
        self.assertStops(lmquant.SystemRefusedError, "", lmquant.open, gone)


class Callbacks(Case):
    def setUp(self):
        super().setUp()
        # Ignored in what a shell has put into the background.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        self.output = self.folder / "out.lmq"

    def convert(self, **options):
        return lmquant.convert(fable, self.output, **options)

    def test_progress_counts(self):
        said = []
        self.convert(progress=lambda *what: said.append(what))
        self.assertTrue(said)
        for stage, done, total in said:
            self.assertIsInstance(stage, str)
            self.assertLessEqual(done, total)

    def test_false_cancels_and_nothing_else_does(self):
        self.assertStops(
            lmquant.CancelledError, "", self.convert,
            progress=lambda *what: False,
        )
        self.assertEqual(os.listdir(self.folder), [])
        for value in None, 0, "", True, 1, numpy.True_:
            self.convert(progress=lambda *what: value, replaces=True)

    def test_a_false_of_numpy_is_false(self):
        for name in "progress", "approve":
            self.assertStops(
                lmquant.CancelledError, "", self.convert,
                **{name: lambda *what: numpy.False_},
            )
        self.assertEqual(os.listdir(self.folder), [])

    def test_approve_refuses_with_anything_false_but_none(self):
        for value in 0, "", [], 0.0:
            self.assertStops(
                lmquant.CancelledError, "", self.convert,
                approve=lambda report: value,
            )
        self.assertEqual(os.listdir(self.folder), [])
        for value in None, 1, "yes", numpy.True_:
            self.convert(approve=lambda report: value, replaces=True)

    def test_what_a_callback_raises_comes_out(self):
        class Own(Exception):
            pass

        def fail(*what):
            raise Own(5)

        self.assertStops(Own, "5", self.convert, progress=fail)
        self.assertStops(Own, "5", self.convert, approve=fail)
        self.assertStops(
            TypeError, "argument", self.convert, progress=lambda: None
        )
        with self.assertRaises(SystemExit):
            self.convert(progress=lambda *what: exit(3))
        self.assertEqual(os.listdir(self.folder), [])

    def test_what_is_no_function_is_refused(self):
        for name in "progress", "approve":
            self.assertStops(TypeError, name, self.convert, **{name: 5})

    def test_approve_sees_the_report_before_the_output_appears(self):
        seen = []

        def look(report):
            seen.append((report, self.output.exists()))

        report = self.convert(approve=look)
        self.assertEqual(len(seen), 1)
        self.assertEqual(seen[0][0]["totals"], report["totals"])
        self.assertFalse(seen[0][1])
        self.output.unlink()
        self.assertStops(
            lmquant.CancelledError, "", self.convert,
            approve=lambda report: False,
        )
        self.assertFalse(self.output.exists())

    def test_closing_in_the_callback_takes_effect_afterwards(self):
        checkpoint = lmquant.open(fable)
        lmquant.convert(
            checkpoint, self.output, progress=lambda *what: checkpoint.close()
        )
        self.assertTrue(checkpoint.is_closed)
        self.assertEqual(self.output.read_bytes(), container().read_bytes())
        self.assertStops(lmquant.ClosedError, "", lmquant.inspect, checkpoint)

    def test_using_it_in_its_own_callback_is_refused(self):
        with lmquant.open(fable) as checkpoint:
            self.assertStops(
                lmquant.BusyError, "in use", lmquant.convert, checkpoint,
                self.output,
                progress=lambda *what: lmquant.inspect(checkpoint),
            )
            lmquant.inspect(checkpoint)

    def test_calls_in_callbacks_of_others_work(self):
        report = self.convert(
            progress=lambda *what: lmquant.inspect(container())
        )
        self.assertTrue(report)

    def test_an_interruption_comes_out_and_leaves_nothing(self):
        def interrupt(*what):
            os.kill(os.getpid(), signal.SIGINT)

        for callback in "progress", "approve":
            with self.assertRaises(KeyboardInterrupt):
                self.convert(**{callback: interrupt})
            self.assertEqual(os.listdir(self.folder), [])
        self.assertIs(
            signal.getsignal(signal.SIGINT), signal.default_int_handler
        )

    def test_an_interruption_stops_a_call_without_callbacks(self):
        # As of somebody at a terminal: while C is running.
        timer = threading.Timer(
            0.3, os.kill, (os.getpid(), signal.SIGINT)
        )
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            for _ in range(1000):
                lmquant.validate(
                    fable, container(), texts=[text] * 20, has_attribution=True
                )
        timer.join()

    def test_other_signals_may_raise_too(self):
        def handle(number, frame):
            raise TimeoutError("too late")

        before = signal.signal(signal.SIGALRM, handle)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with self.assertRaisesRegex(TimeoutError, "too late"):
                for _ in range(1000):
                    lmquant.validate(fable, container(), texts=[text] * 20)
            self.assertIs(signal.getsignal(signal.SIGALRM), handle)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def test_other_threads_run_meanwhile(self):
        counted = []
        done = threading.Event()

        def count():
            n = 0
            while not done.is_set():
                n += 1
                done.wait(0.001)
            counted.append(n)

        thread = threading.Thread(target=count)
        thread.start()
        lmquant.validate(fable, container(), texts=[text])
        done.set()
        thread.join()
        self.assertGreater(counted[0], 5)

    def test_callbacks_come_in_threads_too(self):
        said, failed = [], []

        def work_there():
            try:
                self.convert(progress=lambda *what: said.append(what))
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=work_there)
        thread.start()
        thread.join()
        self.assertEqual(failed, [])
        self.assertTrue(said)


if __name__ == "__main__":
    unittest.main()
