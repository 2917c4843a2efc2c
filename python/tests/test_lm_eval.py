"""The adapter for lm-eval, where that is installed."""

import json
import subprocess
import sys
import unittest

import numpy as np

from common import Case, container, fable, root, text

import lmquant

try:
    import lm_eval
    from lm_eval.api.instance import Instance
    from lm_eval.tasks import TaskManager

    import lmquant.lm_eval as adapter
except ImportError:
    lm_eval = None

examples = root / "python" / "examples"


def request(kind, *arguments):
    return Instance(kind, {}, arguments, 0)


@unittest.skipIf(lm_eval is None, "lm-eval is not installed")
class LmEval(Case):
    def setUp(self):
        super().setUp()
        self.model = adapter.LmquantLM(str(container()), batch_size=1)
        self.stories = text.read_text().split("\n\n")

    def by_hand(self, tokens, n):
        """The log-probability of the last n tokens."""
        session = lmquant.open(container()).session()
        total = 0.0
        for i, token in enumerate(tokens[:-1]):
            logits = session.eval([token]).astype(np.float64)
            if i >= len(tokens) - 1 - n:
                total += logits[tokens[i + 1]] - np.log(np.exp(logits).sum())
        return total

    def test_scores_are_those_of_a_session(self):
        asked = []
        for story in self.stories[:5]:
            for answer in " the", " went home.", story[90:250]:
                # Spaces at its end would be counted as the answer's.
                asked.append((story[:90].rstrip(), answer))
        found = self.model.loglikelihood(
            [request("loglikelihood", *pair) for pair in asked],
            disable_tqdm=True,
        )
        for (context, answer), (total, is_greedy) in zip(asked, found):
            # lm-eval cuts the ids of both where those of the context end.
            given = self.model.tok_encode(context)
            scored = self.model.tok_encode(context + answer)[len(given) :]
            self.assertAlmostEqual(
                total, self.by_hand(given + scored, len(scored)), 9
            )
            self.assertIn(is_greedy, (True, False))

    def test_an_answer_without_tokens_has_no_score(self):
        # The r is a part of the last token of both.
        for context, answer in ("They worked together", ""), ("<s>", ""):
            self.assertStops(
                lmquant.ArgumentError,
                "choice '' adds no token to the prompt",
                self.model.loglikelihood,
                [request("loglikelihood", "Once", " upon"),
                 request("loglikelihood", context, answer)],
                disable_tqdm=True,
            )
        error = self.assertStops(
            lmquant.ArgumentError, "choice 'r' adds no token",
            self.model.loglikelihood,
            [request("loglikelihood", "They worked togethe", "r")],
            disable_tqdm=True,
        )
        self.assertIsInstance(error, ValueError)
        self.assertStops(
            lmquant.ArgumentError, "nothing predicts choice 'x'",
            self.model._loglikelihood_tokens, [(("", "x"), [], [5, 6])],
        )

    def test_the_likeliest_answer_is_greedy(self):
        context = self.stories[0][:90].rstrip()
        made = self.model.generate_until(
            [request("generate_until", context,
                     {"until": [], "max_gen_toks": 8})],
            disable_tqdm=True,
        )[0]
        session = lmquant.open(container()).session()
        ids = self.model.tok_encode(context)
        more = list(session.generate(ids, 8))
        total, is_greedy = self.model._score(ids, more)
        self.assertTrue(is_greedy)
        self.assertEqual(self.model._tokenizer.detokenize(more), made)
        self.assertFalse(self.model._score(ids, more[:-1] + [7])[1])

    def test_long_texts_roll(self):
        long = " ".join(self.stories[:4])
        totals = self.model.loglikelihood_rolling(
            [request("loglikelihood_rolling", self.stories[0][:200]),
             request("loglikelihood_rolling", long)],
            disable_tqdm=True,
        )
        ids = self.model.tok_encode(self.stories[0][:200])
        self.assertAlmostEqual(
            totals[0], self.by_hand([1] + ids, len(ids)), 9
        )
        n = len(self.model.tok_encode(long))
        self.assertGreater(n, self.model.max_length)
        self.assertTrue(-3 * n < totals[1] < 0)

    def test_an_empty_text_rolls(self):
        asked = [request("loglikelihood_rolling", "")]
        found = self.model.loglikelihood_rolling(asked, disable_tqdm=True)
        self.assertAlmostEqual(found[0], self.by_hand([1, 1], 1), 9)
        self.model.tok_encode = lambda string: []  # as without a begin token
        self.assertEqual(
            self.model.loglikelihood_rolling(asked, disable_tqdm=True), [0.0]
        )

    def test_what_is_cut_is_told_once(self):
        short = adapter.LmquantLM(str(container()), max_length=31)
        long, name = self.stories[0][:400].rstrip(), adapter.__name__
        for ask, what, pattern in (
            (short.loglikelihood, ("loglikelihood", long, " the"),
             "more than the 31 tokens of the context"),
            (short.generate_until, ("generate_until", long,
                                    {"until": [], "max_gen_toks": 4}),
             "cut from the left to 27 tokens"),
        ):
            with self.assertLogs(name, "WARNING") as caught:
                ask([request(*what)] * 2, disable_tqdm=True)
            self.assertEqual(len(caught.output), 1)
            self.assertIn(pattern, caught.output[0])

    def test_a_penalty_is_for_the_whole_text(self):
        context = self.stories[0][:250].rstrip()
        ids = self.model.tok_encode(context)
        self.assertTrue(80 < len(ids) < 170, len(ids))
        made = self.model.generate_until(
            [request("generate_until", context,
                     {"until": [], "max_gen_toks": 80,
                      "repetition_penalty": 1.3})],
            disable_tqdm=True,
        )[0]
        # As transformers does it: each token of the text, once.
        session, more = lmquant.open(container()).session(), []
        logits = session.eval(ids).copy()
        for _ in range(80):
            seen = sorted(set(ids + more))
            logits[seen] = np.where(
                logits[seen] > 0, logits[seen] / 1.3, logits[seen] * 1.3
            )
            more.append(int(logits.argmax()))
            if self.model._tokenizer.ends(more[-1]):
                more.pop()
                break
            logits = session.eval(more[-1:]).copy()
        self.assertEqual(made, self.model._tokenizer.detokenize(more))

    def test_arguments_that_are_not_known_are_refused(self):
        def make(arguments):
            return adapter.LmquantLM.create_from_arg_string(
                "path=%s,%s" % (container(), arguments),
                {"batch_size": 1, "max_batch_size": 8, "device": "cpu"},
            )

        self.assertEqual(
            make("max_length=32,trust_remote_code=True").max_length, 32
        )
        self.assertStops(
            TypeError,
            "has no option 'max_lenght', did you mean 'max_length'",
            make, "max_lenght=32",
        )
        error = self.assertStops(
            TypeError, "no option 'zz', only path", make, "zz=1"
        )
        self.assertNotIn("device", str(error))
        self.assertNotIn("others", str(error))

    def test_generation_stops_where_it_is_told(self):
        context = self.stories[0][:60]
        asked = [
            request("generate_until", context, arguments)
            for arguments in (
                {"until": ["."], "max_gen_toks": 60},
                {"until": ".", "max_gen_toks": 60},
                {"until": [], "max_gen_toks": 5},
                {"until": ["."], "max_gen_toks": 60, "do_sample": True,
                 "temperature": 0.9, "top_k": 5, "seed": 3},
            )
        ]
        made = self.model.generate_until(asked, disable_tqdm=True)
        self.assertTrue(made[0])
        self.assertNotIn(".", made[0])
        self.assertEqual(made[0], made[1])
        self.assertNotIn(".", made[3])
        self.assertStops(
            lmquant.ArgumentError, "context has 256",
            self.model.generate_until,
            [request("generate_until", context, {"max_gen_toks": 256})],
            disable_tqdm=True,
        )

    def test_a_begin_token_in_the_text_is_not_doubled(self):
        self.assertEqual(
            self.model.tok_encode("<s>Once"), self.model.tok_encode("Once")
        )
        self.assertEqual(self.model.tok_encode("Once")[0], 1)
        self.assertNotIn(
            1, self.model.tok_encode("Once", add_special_tokens=False)
        )
        self.assertEqual(self.model.prefix_token_id, 1)
        self.assertEqual(self.model.eot_token_id, 2)

    def test_what_cannot_be_opened_is_told(self):
        self.assertStops(
            lmquant.SystemRefusedError, "", adapter.LmquantLM, "/nowhere"
        )

    def samples(self, path):
        """What lm-eval finds, as it would log it. Its command does the same,
        but looks through thousands of tasks first."""
        results = lm_eval.simple_evaluate(
            model="lmquant",
            model_args={"path": str(path)},
            tasks=["fables"],
            task_manager=TaskManager(
                include_path=str(examples / "fables"), include_defaults=False
            ),
            bootstrap_iters=0,
        )
        score = results["results"]["fables"]["acc,none"]
        self.assertTrue(0.9 < score < 1, score)
        log = self.folder / (path.name + ".jsonl")
        with open(log, "w") as file:
            for sample in results["samples"]["fables"]:
                print(json.dumps(sample, default=str), file=file)
        return str(log)

    def test_both_are_scored_and_flips_counted(self):
        done = subprocess.run(
            [sys.executable, "-B", str(examples / "flips.py"),
             self.samples(fable), self.samples(container())],
            stdout=subprocess.PIPE, check=True, universal_newlines=True,
        )
        self.assertIn("217 questions, 212 and 212 answered right", done.stdout)
        self.assertIn("2 answers changed: 1 lost, 1 gained", done.stdout)

    def test_the_command_is_lm_eval_s(self):
        done = subprocess.run(
            [sys.executable, "-B", "-m", "lmquant.lm_eval", "run", "--help"],
            stdout=subprocess.PIPE, universal_newlines=True,
        )
        self.assertEqual(done.returncode, 0)
        self.assertIn("usage: lm-eval run", done.stdout)


if __name__ == "__main__":
    unittest.main()
