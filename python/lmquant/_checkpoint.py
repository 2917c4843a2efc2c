"""Checkpoints: models in files or folders of any known format."""

from __future__ import annotations

import os
from ctypes import byref
from typing import TYPE_CHECKING, Iterator, Optional

from . import _library, _options
from ._calls import make
from ._chat import Chat
from ._handles import Handle
from ._library import library
from ._options import Path
from ._session import Model, Session
from ._text import Detokenizer, Tokenizer

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._types import OpenOptions, SamplerOptions, SessionOptions


class Checkpoint(Handle):
    """A model in a file or folder."""

    _name = "checkpoint"

    def __init__(self, path: Path, **options: Unpack[OpenOptions]) -> None:
        filled = _options.fill(_library.OpenOptions, options, "a checkpoint")
        encoded = _options.text(path, "the path")
        self.path = os.fsdecode(encoded)
        super().__init__(
            make(library.lmq_checkpoint_open, encoded, byref(filled)),
            library.lmq_checkpoint_close,
        )

    def __repr__(self) -> str:
        return "<%s lmquant.Checkpoint %r>" % (
            "closed" if self.is_closed else "open",
            self.path,
        )

    def tokenizer(self) -> Tokenizer:
        """That which the checkpoint carries."""
        return Tokenizer(self)

    def chat(
        self,
        tokenizer: Optional[Tokenizer] = None,
        *,
        format: Optional[str] = None,
    ) -> Chat:
        """How its model writes down a conversation."""
        return Chat(self, tokenizer, format=format)

    def model(self) -> Model:
        """Its weights, ready to be multiplied."""
        return Model(self)

    def session(self, **options: Unpack[SessionOptions]) -> Session:
        """A session of a model of its own."""
        return self.model().session(**options)

    def generate(
        self,
        prompt: str,
        n: int = 256,
        *,
        session: Optional[SessionOptions] = None,
        **sampling: Unpack[SamplerOptions],
    ) -> Iterator[str]:
        """Continues a text by at most n tokens; the pieces come as they are
        made, without the prompt. Without options of sampling the likeliest
        token is taken, always."""
        given: SessionOptions = session if session is not None else {}
        with self.tokenizer() as tokenizer, self.session(**given) as running:
            with Detokenizer(tokenizer) as detokenizer:
                prompt_ids = tokenizer.tokenize(prompt, special=True)
                # What comes is the middle of a text: a space at its beginning
                # stays.
                for token in prompt_ids:
                    detokenizer.next(token)
                for token in running.generate(
                    prompt_ids, n, tokenizer=tokenizer, **sampling
                ):
                    piece = detokenizer.next(token)
                    if piece:
                        yield piece
                rest = detokenizer.end()
                if rest:
                    yield rest


def open(path: Path, **options: Unpack[OpenOptions]) -> Checkpoint:
    """Opens a file or a folder. The options are what it may not carry itself:
    tokenizer, config, rope_theta, norm_eps; and is_copied, for weights that
    are read into memory instead of mapped."""
    return Checkpoint(path, **options)
