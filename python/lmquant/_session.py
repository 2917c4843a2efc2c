"""Models and sessions: token ids to logits."""

from __future__ import annotations

from ctypes import (
    POINTER,
    byref,
    c_float,
    c_int32,
    c_size_t,
    c_void_p,
    cast,
)
from typing import TYPE_CHECKING, Iterator, Optional

import numpy as np
import numpy.typing as npt

from . import _library, _options
from ._calls import check, make
from ._errors import ArgumentError, BusyError
from ._handles import Handle, Memory, expect, using
from ._library import library
from ._text import Tokenizer, Tokens, pointer, to_id, to_ids

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._checkpoint import Checkpoint
    from ._types import SamplerOptions, SessionOptions

Logits = npt.NDArray[np.float32]

# How many tokens are evaluated in one call of the library. Between two of them
# an interruption takes effect.
_BATCH = 128

# Tokens at the beginning that stay when the context is full: attention rests
# on them whatever they say.
_SINKS = 4


class Model(Handle):
    """The weights of a checkpoint, ready to be multiplied. Sessions and threads
    share it."""

    _name = "model"
    _is_shared = True

    def __init__(self, checkpoint: Checkpoint) -> None:
        with using(expect("checkpoint", checkpoint)) as (address,):
            made = make(library.lmq_model_open, address)
        super().__init__(made, library.lmq_model_close, checkpoint)

    @property
    def vocabulary(self) -> int:
        """How many logits there are."""
        with using(self) as (model,):
            return int(library.lmq_model_vocabulary(model))

    @property
    def context(self) -> int:
        """How many positions it was trained for."""
        with using(self) as (model,):
            return int(library.lmq_model_context(model))

    def session(self, **options: Unpack[SessionOptions]) -> Session:
        return Session(self, **options)


class Session(Handle):
    """One sequence of tokens through a model."""

    _name = "session"

    def __init__(
        self, model: Model, **options: Unpack[SessionOptions]
    ) -> None:
        filled = _options.fill(_library.SessionOptions, options, "a session")
        filled.batch = filled.batch or _BATCH
        with using(expect("model", model)) as (address,):
            made = make(library.lmq_session_new, address, byref(filled))
            self.vocabulary = int(library.lmq_model_vocabulary(address))
        super().__init__(made, library.lmq_session_free, model)
        self.context = int(library.lmq_session_context(made))
        self.batch = min(int(filled.batch), self.context)
        self._keeps_all = bool(filled.all_logits)
        self._n_kept = 0

    @property
    def position(self) -> int:
        """How many tokens it holds."""
        with using(self) as (session,):
            return int(library.lmq_session_position(session))

    @property
    def logits(self) -> Logits:
        """Those that are kept, a row for each token: of the last one, with
        all_logits of the last batch. This is the session's own memory, which
        its next evaluation overwrites."""
        with using(self) as (session,):
            return self._view(session)

    def _view(self, session: int) -> Logits:
        first = library.lmq_session_logits(session, max(self._n_kept, 1) - 1)
        if not first:
            return np.empty((0, self.vocabulary), np.float32)
        return np.asarray(
            Memory(
                self,
                cast(first, c_void_p).value or 0,
                (self._n_kept, self.vocabulary),
            )
        )

    def eval(self, tokens: Tokens) -> Logits:
        """Appends tokens, and gives the logits after the last of them. They
        are the session's own memory, which its next evaluation overwrites:
        copy() what is to stay. If this fails, nothing was appended."""
        ids = to_ids(tokens)
        with using(self) as (session,):
            start = int(library.lmq_session_position(session))
            try:
                for batch in self._batches(ids, start):
                    self._append(session, batch)
            except BaseException:
                if library.lmq_session_position(session) != start:
                    library.lmq_session_rewind(session, start)
                raise
            last: Logits = self._view(session)[-1]
            return last

    def eval_each(self, tokens: Tokens) -> Iterator[Logits]:
        """Appends tokens batch by batch, and gives the logits of each as it
        comes: with all_logits a row for each token."""
        ids = to_ids(tokens)
        at = self.position
        for batch in self._batches(ids, at):
            with using(self) as (session,):
                if library.lmq_session_position(session) != at:
                    raise BusyError("the session has moved meanwhile")
                self._append(session, batch)
                logits = self._view(session)
            at += len(batch)
            yield logits

    def _batches(
        self, ids: npt.NDArray[np.int32], position: int
    ) -> Iterator[npt.NDArray[np.int32]]:
        # None, or too many for the session: the library says so.
        if len(ids) == 0 or len(ids) > self.context - position:
            yield ids
        for at in range(0, len(ids), self.batch):
            yield ids[at : at + self.batch]

    def _append(self, session: int, ids: npt.NDArray[np.int32]) -> None:
        err = _library.Error()
        check(
            library.lmq_session_eval(
                session, pointer(ids), len(ids), byref(err)
            ),
            err,
        )
        self._n_kept = len(ids) if self._keeps_all else 1

    def rewind(self, position: int = 0) -> None:
        """Forgets everything from `position` on."""
        to = _options.integer(position, c_size_t, "the position")
        with using(self) as (session,):
            library.lmq_session_rewind(session, to)

    def slide(self, sinks: int = _SINKS) -> None:
        """Makes room: keeps the first tokens and the last ones, half of what
        it holds, and evaluates these anew."""
        kept = _options.integer(sinks, c_size_t, "the number of sinks")
        err = _library.Error()
        with using(self) as (session,):
            check(library.lmq_session_slide(session, kept, byref(err)), err)
            n = int(library.lmq_session_position(session))
            self._n_kept = (n - 1) % self.batch + 1 if self._keeps_all else 1

    def generate(
        self,
        tokens: Tokens,
        n: int = 256,
        *,
        tokenizer: Optional[Tokenizer] = None,
        **sampling: Unpack[SamplerOptions],
    ) -> Iterator[int]:
        """Appends tokens and continues them with at most n others, which come
        one by one. They end where `tokenizer` says that a text ends, and are
        tokens that it has. When the session is full it slides. Without options
        of sampling the likeliest token is taken, always."""
        ids = to_ids(tokens)
        size = self.vocabulary
        if tokenizer is not None:
            size = min(size, len(expect("tokenizer", tokenizer)))
        with Sampler(size, **sampling) as sampler:
            for token in ids.tolist():
                sampler.accept(token)
            logits = self.eval(ids)
            for i in range(n):
                token = sampler.pick(logits[:size])
                if tokenizer is not None and tokenizer.ends(token):
                    return
                yield token
                if i + 1 < n:
                    sampler.accept(token)
                    if self.position == self.context:
                        self.slide()
                    logits = self.eval([token])


class Sampler(Handle):
    """Chooses tokens. The same seed, options and logits give the same ones on
    every machine."""

    _name = "sampler"

    def __init__(
        self, vocabulary: int, **options: Unpack[SamplerOptions]
    ) -> None:
        filled = _options.fill(_library.SamplerOptions, options, "a sampler")
        self.vocabulary = _options.integer(
            vocabulary, c_int32, "the vocabulary"
        )
        super().__init__(
            make(
                library.lmq_sampler_new,
                byref(filled),
                max(self.vocabulary, 0),
            ),
            library.lmq_sampler_free,
        )

    def accept(self, token: int) -> None:
        """Tells it what stands in the text; the penalties look at that."""
        with using(self) as (sampler,):
            library.lmq_sampler_accept(sampler, to_id(token))

    def pick(self, logits: npt.ArrayLike) -> int:
        """The next token."""
        given = np.ascontiguousarray(logits, np.float32)
        if given.shape != (self.vocabulary,):
            raise ArgumentError(
                "logits of the shape %s, expected (%d,)"
                % (given.shape, self.vocabulary)
            )
        with using(self) as (sampler,):
            return int(
                library.lmq_sampler_pick(
                    sampler, given.ctypes.data_as(POINTER(c_float))
                )
            )
