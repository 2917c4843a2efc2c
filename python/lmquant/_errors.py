"""Exceptions: a class for each status of the library, and some of our own."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple


class Error(Exception):
    """What went wrong; the base of all exceptions here.

    `message` says what, `hint` what to do about it, `path` is the file
    concerned, `offset` the place in it; `option` is the option that the
    message names first. Where there is none of these it is empty. `report` is
    what verify() found before it failed.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        path: str = "",
        option: str = "",
        offset: int = 0,
        report: Optional[Dict[str, Any]] = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.path = path
        self.option = option
        self.offset = offset
        self.report = report

    def __str__(self) -> str:
        text = self.path + ": " + self.message if self.path else self.message
        return text + "\nhint: " + self.hint if self.hint else text

    # Processes hand exceptions to each other.
    def __reduce__(self) -> Tuple[Any, ...]:
        return _again, (type(self), dict(self.__dict__))


def _again(kind: Any, members: Dict[str, Any]) -> Error:
    message = members.pop("message")
    error: Error = kind(message, **members)
    return error


class ArgumentError(Error, ValueError):
    """The caller's mistake: an option, a name, a gate."""


class SystemRefusedError(Error, OSError):
    """The system refused: files, permissions, space."""


class OutOfMemoryError(Error, MemoryError):
    """Out of memory."""


class FormatError(Error, ValueError):
    """An input is malformed, truncated or corrupt."""


class UnsupportedError(Error):
    """An input is valid, but not understood."""


class NonFiniteError(Error, ArithmeticError):
    """NaN or infinity where a number is needed."""


class CancelledError(Error):
    """A callback asked to stop."""


class ClosedError(Error, ValueError):
    """The object has been closed."""


class BusyError(Error, RuntimeError):
    """The object is in use: by another thread, or by the call that has called
    this callback."""


class LibraryError(Error, ImportError):  # type: ignore[misc]
    """The shared library is not there, or is another one."""
