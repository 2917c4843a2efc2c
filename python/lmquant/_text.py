"""Text to token ids, and back."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_int, c_int32, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any, List, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _library, _options
from ._calls import check, make
from ._errors import ArgumentError
from ._handles import Handle, expect, using
from ._library import library

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._checkpoint import Checkpoint
    from ._types import OpenOptions

Tokens = Union[Sequence[int], npt.NDArray[np.integer[Any]]]


_LEAST, _MOST = -(2**31), 2**31 - 1


def to_ids(tokens: Tokens) -> npt.NDArray[np.int32]:
    """Token ids as the library takes them."""
    # A copy: another thread may write to an array while the library reads.
    given = np.array(tokens)
    if given.size == 0 and given.ndim == 1:
        return np.empty(0, np.int32)
    kind = given.dtype
    if kind.kind == "f" and not isinstance(tokens, np.ndarray):
        # Of uint64 and int together NumPy makes float64.
        given = np.array(tokens, object)
    is_whole = given.dtype.kind in "iu" or all(
        isinstance(id, (int, np.integer)) for id in given.flat
    )
    if given.ndim != 1 or not is_whole:
        raise TypeError(
            "token ids are %s of %d dimensions, expected a list of integers"
            % (kind, given.ndim)
        )
    if not _LEAST <= int(given.min()) <= int(given.max()) <= _MOST:
        raise ArgumentError("a token id is out of range")
    return given.astype(np.int32)


def to_id(token: int) -> int:
    return int(to_ids([token])[0])


def pointer(ids: npt.NDArray[np.int32]) -> Any:
    return ids.ctypes.data_as(POINTER(c_int32))


def _flags(plain: bool, special: bool) -> int:
    return (_library.TEXT_PLAIN if plain else 0) | (
        _library.TEXT_SPECIAL if special else 0
    )


class Tokenizer(Handle):
    """Of a checkpoint, or of a file: Tokenizer("tokenizer.json"). Threads may
    share it."""

    _name = "tokenizer"
    _is_shared = True

    def __init__(
        self,
        source: Union[Checkpoint, _options.Path],
        **options: Unpack[OpenOptions],
    ) -> None:
        if isinstance(source, Handle):
            if options:
                raise TypeError("an open checkpoint takes no options")
            with using(expect("checkpoint", source)) as (checkpoint,):
                address = make(library.lmq_tokenizer_from_checkpoint, checkpoint)
        else:
            filled = _options.fill(
                _library.OpenOptions, options, "a tokenizer"
            )
            address = make(
                library.lmq_tokenizer_from_path,
                _options.text(source, "the path"),
                byref(filled),
            )
        super().__init__(address, library.lmq_tokenizer_close)

    @property
    def kind(self) -> str:
        """What its file is: "Mistral", "Hugging Face", "GGUF",
        "SentencePiece", "tiktoken", "llama2.c"."""
        with using(self) as (tokenizer,):
            kind: bytes = library.lmq_tokenizer_kind(tokenizer)
            return kind.decode()

    def __len__(self) -> int:
        """One more than the largest id."""
        with using(self) as (tokenizer,):
            return int(library.lmq_tokenizer_size(tokenizer))

    def ends(self, token: int) -> bool:
        """Whether a generation ends with this token."""
        with using(self) as (tokenizer,):
            return bool(library.lmq_tokenizer_ends(tokenizer, to_id(token)))

    def token(self, token: int) -> bytes:
        """What a token stands for, perhaps a part of a character."""
        piece, n, is_text, err = c_void_p(), c_size_t(), c_int(), _library.Error()
        with using(self) as (tokenizer,):
            check(
                library.lmq_tokenizer_token(
                    tokenizer,
                    to_id(token),
                    byref(piece),
                    byref(n),
                    byref(is_text),
                    byref(err),
                ),
                err,
            )
            return ctypes.string_at(piece, n.value) if n.value else b""

    def tokenize(
        self,
        text: Union[str, bytes],
        *,
        plain: bool = False,
        special: bool = False,
    ) -> List[int]:
        """The ids of a text. `plain`: without the begin token that the model
        expects; `special`: special tokens that are spelt out count as such."""
        if not isinstance(text, (str, bytes)):
            raise TypeError(
                "the text is %s, expected str or bytes" % type(text).__name__
            )
        encoded = text.encode() if isinstance(text, str) else text
        ids, n, err = POINTER(c_int32)(), c_size_t(), _library.Error()
        with using(self) as (tokenizer,):
            check(
                library.lmq_tokenize(
                    tokenizer,
                    encoded,
                    len(encoded),
                    _flags(plain, special),
                    byref(ids),
                    byref(n),
                    byref(err),
                ),
                err,
            )
        try:
            return list(ids[: n.value])
        finally:
            library.lmq_tokens_free(ids)

    def detokenize(self, tokens: Tokens, *, special: bool = False) -> str:
        """The text of ids; what is no UTF-8 in it becomes U+FFFD. `special`:
        special tokens are shown."""
        return self.detokenize_bytes(tokens, special=special).decode(
            "utf-8", "replace"
        )

    def detokenize_bytes(
        self, tokens: Tokens, *, special: bool = False
    ) -> bytes:
        """The very bytes of the text."""
        ids = to_ids(tokens)
        text, n, err = c_void_p(), c_size_t(), _library.Error()
        with using(self) as (tokenizer,):
            check(
                library.lmq_detokenize(
                    tokenizer,
                    pointer(ids),
                    len(ids),
                    _flags(False, special),
                    byref(text),
                    byref(n),
                    byref(err),
                ),
                err,
            )
        try:
            return ctypes.string_at(text, n.value)
        finally:
            library.lmq_text_free(text)


class Detokenizer(Handle):
    """Ids to text as the ids come."""

    _name = "detokenizer"

    def __init__(self, tokenizer: Tokenizer, *, special: bool = False) -> None:
        with using(expect("tokenizer", tokenizer)) as (address,):
            made = make(
                library.lmq_detokenizer_new, address, _flags(False, special)
            )
        super().__init__(made, library.lmq_detokenizer_free, tokenizer)

    def next(self, token: int) -> str:
        """The text that is complete with this token, in whole characters."""
        id = to_id(token)
        if id < 0:
            raise ArgumentError("token %d is not in the vocabulary" % id)
        return self._next(id)

    def end(self) -> str:
        """What was held back."""
        return self._next(-1)

    def _next(self, token: int) -> str:
        text, n, err = c_void_p(), c_size_t(), _library.Error()
        with using(self) as (detokenizer,):
            check(
                library.lmq_detokenizer_next(
                    detokenizer, token, byref(text), byref(n), byref(err)
                ),
                err,
            )
            piece = ctypes.string_at(text, n.value) if n.value else b""
        return piece.decode("utf-8", "replace")
