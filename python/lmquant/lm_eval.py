"""Models of lmquant for lm-eval: task scores of anything that can be run.

    python -m lmquant.lm_eval --model lmquant --model_args path=x.lmq ...

is lm-eval's own command, which knows lmquant then. Releases after 0.4.13 find
it by themselves, through an entry point.
"""

from __future__ import annotations

import functools
import inspect
import logging
import math
import sys
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
from lm_eval import utils
from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model
from lm_eval.models.utils import normalize_gen_kwargs
from tqdm import tqdm

import lmquant
from lmquant._options import fail_unknown
from lmquant._types import OpenOptions, SamplerOptions, SessionOptions

_log = logging.getLogger(__name__)

# A request of lm-eval: its texts (None: no cache wants to know them), the ids
# of what is given, the ids of what is scored.
Request = Tuple[Optional[Tuple[str, str]], List[int], List[int]]

# What lm-eval's generation arguments, which are those of transformers, are
# called here.
_SAMPLING = {
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "typical_p": "typical",
    "repetition_penalty": "repeat_penalty",
    "seed": "seed",
}
_HANDLED = {"do_sample", "until", "max_gen_toks"}

# What lm-eval itself gives every model; it means nothing here.
_IGNORED = {"batch_size", "max_batch_size", "device", "trust_remote_code"}


def _log_probability(logits: Any, token: int) -> float:
    row = np.asarray(logits, np.float64)
    most = row.max()
    return float(row[token] - most - math.log(np.exp(row - most).sum()))


def _arguments() -> List[str]:
    """What can be given in --model_args."""
    return [*inspect.signature(LmquantLM).parameters][:-1]  # without others


def _n_common(a: Sequence[int], b: Sequence[int]) -> int:
    n = min(len(a), len(b))
    return next((i for i in range(n) if a[i] != b[i]), n)


def _check_request(request: Request) -> None:
    texts, context, scored = request
    choice = "a choice" if texts is None else "choice %r" % texts[1]
    if not scored:
        # The product of no probabilities is 1: it would win.
        raise lmquant.ArgumentError("%s adds no token to the prompt" % choice)
    if not context:
        raise lmquant.ArgumentError(
            "the prompt has no tokens, and this model has no begin token: "
            "nothing predicts %s" % choice
        )


class LmquantLM(TemplateLM):
    """`path` and what `lmquant.open` and sessions take: tokenizer, config,
    rope_theta, norm_eps; max_length (the context), threads, kv, activations;
    and prefix_token_id, what stands before a text without a beginning; and
    chat_format, the name of one, if the model's own is not recognised.

    Requests run one after the other, each on all threads. Those that begin
    alike, as the choices of a question do, share the work: the logits are the
    same bits however tokens are cut.
    """

    def __init__(
        self,
        path: str,
        *,
        tokenizer: Optional[str] = None,
        config: Optional[str] = None,
        rope_theta: float = 0,
        norm_eps: float = 0,
        max_length: int = 0,
        max_gen_toks: int = 256,
        threads: int = 0,
        kv: Optional[str] = None,
        activations: Optional[str] = None,
        prefix_token_id: Optional[int] = None,
        chat_format: Optional[str] = None,
        **others: object,
    ) -> None:
        super().__init__()
        for name in sorted(set(others) - _IGNORED):
            fail_unknown(name, _arguments(), "the model lmquant")
        options: OpenOptions = {"rope_theta": rope_theta, "norm_eps": norm_eps}
        if tokenizer is not None:
            options["tokenizer"] = tokenizer
        if config is not None:
            options["config"] = config
        running: SessionOptions = {
            "context": max_length,
            "threads": threads,
            "all_logits": True,
        }
        if kv is not None:
            running["kv"] = kv
        if activations is not None:
            running["activations"] = activations
        self._checkpoint = lmquant.open(str(path), **options)
        self._tokenizer = self._checkpoint.tokenizer()
        self._session = self._checkpoint.session(**running)
        self._held: List[int] = []  # the tokens of the session
        self._prefix = prefix_token_id
        self._chat_format = chat_format
        self.max_length = self._session.context
        self.max_gen_toks = max_gen_toks

    # ---- What lm-eval asks ----

    @functools.cached_property
    def eot_token_id(self) -> int:
        begin = self._tokenizer.tokenize("")
        for token in range(len(self._tokenizer)):
            if self._tokenizer.ends(token) and token not in begin:
                return token
        raise lmquant.ArgumentError(
            "the tokenizer has no token that ends a text",
            hint="--model_args prefix_token_id=N says what to begin with",
        )

    @functools.cached_property
    def prefix_token_id(self) -> int:
        if self._prefix is not None:
            return self._prefix
        begin = self._tokenizer.tokenize("")
        return begin[0] if begin else self.eot_token_id

    @property
    def tokenizer_name(self) -> str:
        return self._checkpoint.path.replace("/", "__")

    @functools.cached_property
    def _chat(self) -> lmquant.Chat:
        return self._checkpoint.chat(self._tokenizer, format=self._chat_format)

    def chat_template(self, chat_template: object = False) -> str:
        """What lm-eval writes down as the template: the format's name."""
        return self._chat.format if chat_template else ""

    def apply_chat_template(
        self,
        chat_history: List[Dict[str, str]],
        add_generation_prompt: bool = True,
    ) -> str:
        if not add_generation_prompt:
            raise lmquant.UnsupportedError(
                "an answer that is begun for the model (gen_prefix) has no "
                "place in a conversation here"
            )
        return self._chat.text(chat_history)

    def get_model_info(self) -> Dict[str, Any]:
        found = lmquant.inspect(self._checkpoint)
        return {
            "lmquant_version": lmquant.library_version(),
            "lmquant_instruction_set": lmquant.instruction_set(),
            "model_format": found["format"],
            "model_num_parameters": found["parameters"],
            "model_bits_per_weight": found["bits_per_weight"],
        }

    def tok_encode(
        self,
        string: str,
        add_special_tokens: Optional[bool] = None,
        left_truncate_len: Optional[int] = None,
        **_: object,
    ) -> List[int]:
        # A text that begins with the begin token needs no second one.
        begin = self._tokenizer.tokenize("")
        if add_special_tokens is None and begin:
            add_special_tokens = not string.startswith(
                self._tokenizer.token(begin[0]).decode("utf-8", "replace")
            )
        ids = self._tokenizer.tokenize(
            string, special=True, plain=add_special_tokens is False
        )
        return ids[-left_truncate_len:] if left_truncate_len else ids

    # ---- Scoring ----

    def _score(self, context: List[int], scored: List[int]) -> Tuple[float, bool]:
        """The log-probability of what is scored, and whether the likeliest
        tokens would have been these."""
        if len(scored) > self.max_length:
            raise lmquant.ArgumentError(
                "%d tokens are to be scored at once, the context has %d"
                % (len(scored), self.max_length)
            )
        if len(context) + len(scored) > self.max_length + 1:
            utils.warning_once(
                _log,
                "prompts are cut from the left where they and what is scored "
                "are more than the %d tokens of the context",
                self.max_length,
            )
        tokens = (context + scored)[-(self.max_length + 1) :]
        inputs, first = tokens[:-1], len(tokens) - 1 - len(scored)
        at = min(_n_common(inputs, self._held), max(first, 0))
        self._held = []  # if this fails
        self._session.rewind(at)
        total, is_greedy = 0.0, True
        for batch in self._session.eval_each(inputs[at:]):
            for i in range(max(first - at, 0), len(batch)):
                target = tokens[at + i + 1]
                total += _log_probability(batch[i], target)
                is_greedy = is_greedy and int(batch[i].argmax()) == target
            at += len(batch)
        self._held = inputs[:at]
        return total, is_greedy

    def _loglikelihood_tokens(
        self,
        requests: Sequence[Request],
        disable_tqdm: bool = False,
        **_: object,
    ) -> List[Tuple[float, bool]]:
        for request in requests:
            _check_request(request)
        answers: Dict[int, Tuple[float, bool]] = {}
        order = sorted(
            range(len(requests)), key=lambda i: requests[i][1] + requests[i][2]
        )
        for i in tqdm(order, desc="loglikelihood", disable=disable_tqdm):
            texts, context, scored = requests[i]
            answers[i] = self._score(context, scored)
            if texts is not None:
                self.cache_hook.add_partial("loglikelihood", texts, answers[i])
        return [answers[i] for i in range(len(requests))]

    def loglikelihood_rolling(
        self, requests: Sequence[Any], disable_tqdm: bool = False
    ) -> List[float]:
        totals = []
        for (text,) in tqdm(
            [request.args for request in requests],
            desc="loglikelihood_rolling",
            disable=disable_tqdm,
        ):
            windows = utils.get_rolling_token_windows(
                token_list=self.tok_encode(text),
                prefix_token=self.prefix_token_id,
                max_seq_len=self.max_length,
                context_len=1,
            )
            total = sum(
                self._score(*utils.make_disjoint_window(window))[0]
                for window in windows
            )
            self.cache_hook.add_partial("loglikelihood_rolling", (text,), total)
            totals.append(total)
        return totals

    # ---- Generating ----

    def _generate(self, context: str, arguments: Dict[str, Any]) -> str:
        given = normalize_gen_kwargs(arguments, self.max_gen_toks)
        n = int(given["max_gen_toks"])
        if n >= self.max_length:
            raise lmquant.ArgumentError(
                "%d tokens are to be generated, the context has %d"
                % (n, self.max_length),
                hint="a smaller max_gen_toks, or a larger max_length",
            )
        sampling: SamplerOptions = {}
        for name, value in given.items():
            if name in _SAMPLING and (given["do_sample"] or "penalty" in name):
                sampling[_SAMPLING[name]] = value  # type: ignore[literal-required]
            elif name not in _SAMPLING and name not in _HANDLED:
                _log.warning("generation argument %s is not known here", name)
        self._held = []
        self._session.rewind()
        ids, room = self.tok_encode(context), self.max_length - n
        if len(ids) > room:
            utils.warning_once(
                _log,
                "prompts are cut from the left to %d tokens: the context has "
                "%d, and %d are to be generated",
                room,
                self.max_length,
                n,
            )
            ids = ids[-room:]
        if "repeat_penalty" in sampling:
            # That of transformers looks back on the whole text.
            sampling["penalty_window"] = len(ids) + n
        made = ""
        with lmquant.Detokenizer(self._tokenizer) as detokenizer:
            for token in self._session.generate(
                ids, n, tokenizer=self._tokenizer, **sampling
            ):
                made += detokenizer.next(token)
                if any(stop in made for stop in given["until"] if stop):
                    break
            else:
                made += detokenizer.end()
        ends = [made.find(stop) for stop in given["until"] if stop]
        return made[: min((at for at in ends if at >= 0), default=None)]

    def generate_until(
        self, requests: Sequence[Any], disable_tqdm: bool = False
    ) -> List[str]:
        made = []
        for request in tqdm(
            requests, desc="generate_until", disable=disable_tqdm
        ):
            context, arguments = request.args
            made.append(self._generate(context, arguments))
            self.cache_hook.add_partial("generate_until", request.args, made[-1])
        return made


def main() -> None:
    """lm-eval's command."""
    from lm_eval.__main__ import cli_evaluate

    sys.argv[0] = "lm-eval"
    cli_evaluate()


if __name__ == "__main__":
    # Not the class of this run as a program, but the one that others import.
    from lmquant.lm_eval import main as run

    run()
else:
    register_model("lmquant")(LmquantLM)
