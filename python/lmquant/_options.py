"""Options: from keyword arguments to the structures of the library."""

from __future__ import annotations

import ctypes
import difflib
import operator
import os
from ctypes import POINTER, c_char_p, c_double, c_void_p
from typing import TYPE_CHECKING, Any, List, Mapping, Type, TypeVar, Union

import numpy as np

from . import _library
from ._errors import ArgumentError

if TYPE_CHECKING:
    Path = Union[str, bytes, os.PathLike[str], os.PathLike[bytes]]
else:
    Path = Union[str, bytes, os.PathLike]

T = TypeVar("T", bound=_library.Options)

_texts = POINTER(c_char_p)
_structures = {
    POINTER(kind): kind
    for kind in (_library.SessionOptions, _library.OpenOptions)
}


def text(value: Any, what: str) -> bytes:
    """A path or a word, as the library takes it."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(
            "%s is %s, expected a string or a path"
            % (what, type(value).__name__)
        )
    encoded = os.fsencode(value)
    if b"\0" in encoded:
        raise ArgumentError("%s has a 0 in it" % what)
    return encoded


def integer(value: Any, kind: Any, what: str) -> int:
    if isinstance(value, np.bool_):
        value = bool(value)
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(
            "%s is %s, expected an integer" % (what, type(value).__name__)
        ) from None
    # ctypes takes the lowest bits of what is too large.
    if kind(number).value != number:
        raise ArgumentError("%s is %d, which is out of range" % (what, number))
    return number


def _real(value: Any, what: str) -> float:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(
            "%s is %s, expected a number" % (what, type(value).__name__)
        )
    return float(value)


def texts(value: Any, what: str) -> List[bytes]:
    """A list of them; one alone is a list of one."""
    if isinstance(value, (str, bytes, os.PathLike)):
        value = [value]
    try:
        values = list(value)
    except TypeError:
        raise TypeError(
            "%s is %s, expected a list of strings"
            % (what, type(value).__name__)
        ) from None
    return [text(item, "a member of " + what) for item in values]


def fail_unknown(name: str, known: List[str], what: str) -> None:
    near = difflib.get_close_matches(name, known, 1)
    raise TypeError(
        "%s has no option %r%s"
        % (
            what,
            name,
            ", did you mean %r?" % near[0]
            if near
            else ", only " + ", ".join(known),
        )
    )


def fill(kind: Type[T], given: Mapping[str, Any], what: str) -> T:
    """The structure with what is given; None is the default. It owns the
    strings and structures that it points to."""
    options = kind(size=ctypes.sizeof(kind))
    types = {field[0]: field[1] for field in kind._fields_}
    lists = [name for name in types if types[name] is _texts]
    known = [
        name
        for name in types
        if name != "size"
        and name[2:] not in lists
        and types[name] is not c_void_p  # what only a program in C can fill
    ]
    for name, value in given.items():
        if name not in known:
            fail_unknown(name, known, what)
        if value is None:
            continue
        if types[name] is c_char_p:
            setattr(options, name, text(value, name))
        elif types[name] is c_double:
            setattr(options, name, _real(value, name))
        elif types[name] is _texts:
            items = texts(value, name)
            setattr(options, name, (c_char_p * len(items))(*items))
            setattr(options, "n_" + name, len(items))
        elif types[name] in _structures:
            if not isinstance(value, Mapping):
                raise TypeError(
                    "%s is %s, expected a dict of options"
                    % (name, type(value).__name__)
                )
            inner = fill(_structures[types[name]], value, name)
            setattr(options, name, ctypes.pointer(inner))
        else:
            setattr(options, name, integer(value, types[name], name))
    return options
