"""Conversations as the text and the tokens that a model expects."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int32, c_size_t, c_void_p
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Tuple,
)

from . import _library, _options
from ._calls import check, make
from ._handles import Handle, expect, using
from ._library import library
from ._text import Tokenizer, pointer, to_id, to_ids

if TYPE_CHECKING:
    from ._checkpoint import Checkpoint

# "role": "system" (only the first), "user", "assistant"; "content": a text, or
# "tokens" instead, of an answer as it was generated.
Message = Mapping[str, Any]


def chat_formats() -> Dict[str, str]:
    """The names of all formats, and whose they are."""
    found: Dict[str, str] = {}
    models = c_char_p()
    while True:
        name = library.lmq_chat_format_at(len(found), byref(models))
        if name is None:
            return found
        found[name.decode()] = (models.value or b"").decode()


def _fill(messages: Iterable[Message]) -> Tuple[Any, int, List[Any]]:
    """The messages as the library takes them, how many, and what they point
    to."""
    try:
        given = list(messages)
    except TypeError:
        raise TypeError(
            "the messages are %s, expected a list of dicts"
            % type(messages).__name__
        ) from None
    filled, kept = (_library.ChatMessage * max(len(given), 1))(), []
    for into, message in zip(filled, given):
        if not isinstance(message, Mapping):
            raise TypeError(
                "a message is %s, expected a dict" % type(message).__name__
            )
        unknown = sorted(set(message) - {"role", "content", "tokens"})
        if unknown:
            raise TypeError("a message has no %r" % unknown[0])
        role, content = message.get("role"), message.get("content")
        if not isinstance(role, str):
            raise TypeError("a message has no role")
        into.role = _options.text(role, "the role of a message")
        if "tokens" in message:
            ids = to_ids(message["tokens"])
            kept.append(ids)
            into.tokens, into.n_tokens = pointer(ids), len(ids)
        elif isinstance(content, str):
            text = content.encode()
            into.text, into.n = text, len(text)
        elif content is not None:
            raise TypeError(
                "the content of a message is %s, expected str"
                % type(content).__name__
            )
    return filled, len(given), kept


class Chat(Handle):
    """How the model of a checkpoint writes down a conversation: by its own chat
    template, which is recognised and never evaluated, or by the name of a
    format. Threads may share it."""

    _name = "chat"
    _is_shared = True

    def __init__(
        self,
        checkpoint: Checkpoint,
        tokenizer: Optional[Tokenizer] = None,
        *,
        format: Optional[str] = None,
    ) -> None:
        expect("checkpoint", checkpoint)
        if tokenizer is None:
            tokenizer = checkpoint.tokenizer()
        name = None if format is None else _options.text(format, "the format")
        with using(checkpoint, expect("tokenizer", tokenizer)) as (of, by):
            made = make(library.lmq_chat_open, of, by, name)
        super().__init__(made, library.lmq_chat_close, tokenizer)

    @property
    def format(self) -> str:
        """The name of its format."""
        with using(self) as (chat,):
            name: bytes = library.lmq_chat_name(chat)
            return name.decode()

    @property
    def stop(self) -> Optional[str]:
        """The text that ends an answer, where no token does."""
        with using(self) as (chat,):
            text: Optional[bytes] = library.lmq_chat_stop(chat)
            return None if text is None else text.decode()

    @property
    def shows_special(self) -> bool:
        """Whether special tokens part an answer: for Detokenizer(special=)."""
        with using(self) as (chat,):
            return bool(library.lmq_chat_text_flags(chat))

    def ends(self, token: int) -> bool:
        """Whether an answer ends with this token."""
        with using(self) as (chat,):
            return bool(library.lmq_chat_ends(chat, to_id(token)))

    def tokens(self, messages: Iterable[Message]) -> List[int]:
        """The whole conversation, and behind a last question what an answer
        begins with. Special tokens that are spelt out in it are words."""
        ids, n, err = POINTER(c_int32)(), c_size_t(), _library.Error()
        filled, n_messages, _ = _fill(messages)
        with using(self) as (chat,):
            check(
                library.lmq_chat_tokens(
                    chat, filled, n_messages, byref(ids), byref(n), byref(err)
                ),
                err,
            )
        try:
            return list(ids[: n.value])
        finally:
            library.lmq_tokens_free(ids)

    def text(self, messages: Iterable[Message]) -> str:
        """The same as text, special tokens by name."""
        text, n, err = c_void_p(), c_size_t(), _library.Error()
        filled, n_messages, _ = _fill(messages)
        with using(self) as (chat,):
            check(
                library.lmq_chat_text(
                    chat, filled, n_messages, byref(text), byref(n), byref(err)
                ),
                err,
            )
        try:
            return ctypes.string_at(text, n.value).decode("utf-8", "replace")
        finally:
            library.lmq_text_free(text)
