"""Who owns what: objects of the library, and how long they live.

An object is freed when it has been closed (or its handle was collected) and
nobody holds it any more: a call that is under way, an object that was made
from it, an array that shows its memory. So whatever a program closes, in
whatever order, in a callback or at the end of the interpreter, nothing is
used after it was freed.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from typing import Any, Callable, Iterator, List, Optional, Set, TypeVar

from ._errors import BusyError, ClosedError

_lock = threading.RLock()


def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


# The child of a fork must not wait for a thread that it does not have.
os.register_at_fork(after_in_child=_renew_lock)


class Resource:
    """An object of the library, its address, and who holds it."""

    def __init__(
        self,
        address: int,
        free: Callable[[int], None],
        parent: Optional[Resource],
        name: str,
        is_shared: bool,
    ) -> None:
        self.name = name
        self.is_closed = False
        self._address: Optional[int] = address
        self._free = free
        self._parent = parent
        self._is_shared = is_shared
        self._users: Set[object] = set()
        self._holders: Set[object] = set()
        if parent is not None:
            parent.hold(self)

    def take(self, user: object) -> int:
        """The address, which is valid until the user gives it back."""
        with _lock:
            if self.is_closed or self._address is None:
                raise ClosedError("the %s is closed" % self.name)
            if self._users and not self._is_shared:
                raise BusyError(
                    "the %s is in use" % self.name,
                    hint="one call at a time, from one thread, and none from "
                    "its own callback",
                )
            self._users.add(user)
            return self._address

    def give(self, user: object) -> None:
        self._users.discard(user)
        self._free_if_unused()

    def hold(self, holder: object) -> None:
        self._holders.add(holder)

    def drop(self, holder: object) -> None:
        self._holders.discard(holder)
        self._free_if_unused()

    def close(self) -> None:
        self.is_closed = True
        self._free_if_unused()

    def _free_if_unused(self) -> None:
        with _lock:
            if not self.is_closed or self._users or self._holders:
                return
            address, self._address = self._address, None
        if address is not None:
            self._free(address)
            if self._parent is not None:
                self._parent.drop(self)


Self = TypeVar("Self", bound="Handle")


class Handle:
    """What a program has of an object. Closing it twice is closing it once;
    `with` closes it at the end of the block."""

    # What kind of object it is, whatever a program calls its own class.
    _name = ""
    # Any number of threads may use the object at the same time.
    _is_shared = False

    def __init__(
        self,
        address: int,
        free: Callable[[int], None],
        parent: Optional[Handle] = None,
    ) -> None:
        self._resource: Resource = Resource(
            address,
            free,
            None if parent is None else parent._resource,
            self._name,
            self._is_shared,
        )
        self._finalizer = weakref.finalize(self, self._resource.close)

    def close(self) -> None:
        """Releases it, as soon as nothing that needs it is left."""
        self._finalizer()

    @property
    def is_closed(self) -> bool:
        return self._resource.is_closed

    def __enter__(self: Self) -> Self:
        if self.is_closed:
            raise ClosedError("the %s is closed" % self._name)
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # A copy would be a second owner.
    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a %s cannot be copied or pickled" % type(self).__name__)


def expect(name: str, value: Any) -> Any:
    """The handle, if it is one of that kind: the library takes any address."""
    if not isinstance(value, Handle) or value._name != name:
        raise TypeError(
            "expected a %s, not %s" % (name, type(value).__name__)
        )
    return value


@contextlib.contextmanager
def using(*handles: Handle) -> Iterator[List[int]]:
    """The addresses of the objects, which stay for as long as this lasts. One
    that stands there twice is used once."""
    user = object()
    resources = [handle._resource for handle in handles]
    unique = list(dict.fromkeys(resources))
    try:
        addresses = {resource: resource.take(user) for resource in unique}
        yield [addresses[resource] for resource in resources]
    finally:
        for resource in unique:
            resource.give(user)


class Memory:
    """A part of an object's memory for NumPy. The array holds this, and this
    the object."""

    def __init__(self, handle: Handle, address: int, shape: Any) -> None:
        self.__array_interface__ = {
            "data": (address, True),
            "shape": shape,
            "typestr": "=f4",
            "version": 3,
        }
        holder = object()
        handle._resource.hold(holder)
        weakref.finalize(self, handle._resource.drop, holder).atexit = False
