"""Calls: statuses become exceptions, reports dicts, callbacks callables."""

from __future__ import annotations

import ctypes
import json
import re
import signal
import threading
from ctypes import byref, c_void_p
from typing import Any, Callable, Dict, Optional

import numpy as np

from . import _errors, _library, _types
from ._library import library

Report = Dict[str, Any]
ProgressCallback = Callable[[str, int, int], object]
ApproveCallback = Callable[[Report], object]

_CLASSES = {
    _library.ERR_ARG: _errors.ArgumentError,
    _library.ERR_IO: _errors.SystemRefusedError,
    _library.ERR_NOMEM: _errors.OutOfMemoryError,
    _library.ERR_FORMAT: _errors.FormatError,
    _library.ERR_UNSUPPORTED: _errors.UnsupportedError,
    _library.ERR_NONFINITE: _errors.NonFiniteError,
    _library.ERR_CANCELLED: _errors.CancelledError,
}


# ---- Messages ----

# Where an option of the command line is a call here.
_CALLS = (
    (
        re.compile(r"lmquant convert \.part=(\w+)/(\w+)"),
        r"lmquant.convert(part=\1, n_parts=\2)",
    ),
    (re.compile(r"\.chat_format=list\b"), "lmquant.chat_formats()"),
)

_OPTION = re.compile(r"(?<![^\s('\"])\.([a-z][a-z_]*)(?: ([A-Z]+)\b)?(?![\w.(])")


def _kinds() -> Dict[str, str]:
    """What the options of all functions are, by name."""
    kinds = {"chat_format": "str", "to": "str"}
    for options in vars(_types).values():
        if isinstance(options, type) and options.__module__ == _types.__name__:
            kinds.update(
                (name, str(getattr(kind, "__forward_arg__", kind)))
                for name, kind in options.__annotations__.items()
            )
    return kinds


_KINDS = _kinds()


def _as_argument(match: re.Match[str]) -> str:
    name, value = match.groups()
    if name not in _KINDS:
        return match.group()
    if value is None and _KINDS[name] == "bool":
        value = "True"
    name = "format" if name == "chat_format" else name
    return name if value is None else name + "=" + value


def _words(text: bytes) -> str:
    """The library calls options as C does: .replaces, .tokenizer FILE."""
    said = text.decode("utf-8", "replace")
    for words, call in _CALLS:
        said = words.sub(call, said)
    return _OPTION.sub(_as_argument, said)


def check(
    status: int, err: _library.Error, report: Optional[Report] = None
) -> None:
    """Raises what a status stands for."""
    if status == _library.OK:
        return
    raise _CLASSES.get(status, _errors.Error)(
        _words(err.message),
        hint=_words(err.hint),
        path=err.path.decode("utf-8", "replace"),
        option=err.option.decode("utf-8", "replace"),
        offset=err.offset,
        report=report,
    )


def make(function: Any, *arguments: Any) -> int:
    """The address of what a function makes; it has its place before err."""
    made, err = c_void_p(), _library.Error()
    check(function(*arguments, byref(made), byref(err)), err)
    assert made.value is not None
    return made.value


# ---- Reports ----


def to_dict(report: c_void_p) -> Report:
    """A copy of a report that somebody owns."""
    text = make(library.lmq_report_text, report, _library.REPORT_JSON)
    try:
        made = json.loads(ctypes.string_at(text))
    finally:
        library.lmq_text_free(text)
    assert isinstance(made, dict)
    return made


# ---- Callbacks ----


class _HeldSignals:
    """While a call lasts, what Python's handlers of signals raise is kept for
    its end: raised where a callback begins, it would be lost in ctypes."""

    def __init__(self) -> None:
        self.error: Optional[BaseException] = None
        self._handlers: Dict[int, Any] = {}

    def __enter__(self) -> _HeldSignals:
        # Nowhere else do handlers run, nor can they be set.
        if threading.current_thread() is threading.main_thread():
            try:
                for number in signal.valid_signals():
                    handler = signal.getsignal(number)
                    if callable(handler):
                        self._handlers[number] = handler
                        signal.signal(number, self._handle)
            except ValueError:
                pass  # an interpreter beside the main one
        return self

    def _handle(self, number: int, frame: Any) -> None:
        try:
            self._handlers[number](number, frame)
        except BaseException as error:
            self.error = self.error or error

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)


def _cancels(value: object) -> bool:
    """What a program may return without a thought does not: None, 0."""
    return isinstance(value, (bool, np.bool_)) and not value


def _refuses(value: object) -> bool:
    """Who is asked for leave and gives something false has not given it."""
    return value is not None and not value


class Work:
    """A call that tells how it proceeds, and can be stopped: by a callback
    that raises something, which is raised again then, or says no; and by what a
    handler of a signal raises."""

    def __init__(
        self,
        progress: Optional[ProgressCallback],
        approve: Optional[ApproveCallback] = None,
    ) -> None:
        for callback, name in (progress, "progress"), (approve, "approve"):
            if callback is not None and not callable(callback):
                raise TypeError(
                    "%s is %s, expected a function"
                    % (name, type(callback).__name__)
                )
        self._report = progress
        self._approve = approve
        self._error: Optional[BaseException] = None
        self._signals = _HeldSignals()

    def _tell(self, says_no: Callable[[], bool]) -> int:
        if self._error is not None:
            return 1
        try:
            return int(says_no() or self._signals.error is not None)
        except BaseException as error:
            self._error = error
            return 1

    def _on_report(self, _: Any, stage: bytes, done: int, total: int) -> int:
        return self._tell(
            lambda: self._report is not None
            and _cancels(
                self._report(stage.decode("utf-8", "replace"), done, total)
            )
        )

    def _on_approve(self, _: Any, report: int) -> int:
        return self._tell(
            lambda: self._approve is not None
            and _refuses(self._approve(to_dict(c_void_p(report))))
        )

    def run(
        self,
        function: Any,
        *arguments: Any,
        also: Any = (),
        then: Optional[Callable[[c_void_p], None]] = None,
    ) -> Report:
        """Calls it with the arguments, a progress, a report, others and an
        error; the report comes back, when `then` has seen it."""
        progress = _library.Progress(
            _library.ReportFunction(self._on_report),
            None,
            _library.ApproveFunction(self._on_approve)
            if self._approve is not None
            else _library.ApproveFunction(),
        )
        made, err = c_void_p(), _library.Error()
        try:
            with self._signals:
                status = function(
                    *arguments, byref(progress), byref(made), *also, byref(err)
                )
            error = self._error or self._signals.error
            if error is not None:
                raise error
            if status != _library.OK:
                check(status, err, to_dict(made) if made.value else None)
            if then is not None:
                then(made)
            return to_dict(made)
        finally:
            library.lmq_report_free(made)
