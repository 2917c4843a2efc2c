"""What the commands of lmquant(1) do, as functions that return their reports.

A source is an open checkpoint, or a path that is opened for the call.
"""

from __future__ import annotations

import contextlib
import os
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Union,
)

from . import _library, _options
from ._calls import (
    ApproveCallback,
    ProgressCallback,
    Report,
    Work,
    check,
    make,
    to_dict,
)
from ._checkpoint import Checkpoint
from ._errors import ArgumentError
from ._handles import using
from ._library import library
from ._options import Path

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._types import (
        BenchOptions,
        ConvertOptions,
        CopyOptions,
        DiffOptions,
        ExportOptions,
        InspectOptions,
        PlanningOptions,
        SealOptions,
        ValidateOptions,
        VerifyOptions,
    )

Source = Union[Checkpoint, Path]


@contextlib.contextmanager
def _open(*sources: Source) -> Iterator[List[int]]:
    """The addresses of checkpoints; what was a path is closed again."""
    with contextlib.ExitStack() as stack:
        opened = [
            source
            if isinstance(source, Checkpoint)
            else stack.enter_context(Checkpoint(source))
            for source in sources
        ]
        yield stack.enter_context(using(*opened))


def inspect(source: Source, **options: Unpack[InspectOptions]) -> Report:
    """What is in there: see lmquant-inspect(1)."""
    filled = _options.fill(_library.InspectOptions, options, "inspect")
    with _open(source) as (checkpoint,):
        report = c_void_p(
            make(library.lmq_inspect, checkpoint, byref(filled))
        )
        try:
            return to_dict(report)
        finally:
            library.lmq_report_free(report)


def convert(
    source: Source,
    output: Path,
    *,
    progress: Optional[ProgressCallback] = None,
    approve: Optional[ApproveCallback] = None,
    **options: Unpack[ConvertOptions],
) -> Report:
    """Writes a container: see lmquant-convert(1). `approve` gets the complete
    report before the output appears; if it returns something false other than
    None, or raises, nothing does."""
    filled = _options.fill(_library.ConvertOptions, options, "convert")
    path = _options.text(output, "the output")
    with _open(source) as (checkpoint,):
        return Work(progress, approve).run(
            library.lmq_convert, checkpoint, path, byref(filled)
        )


def split(
    source: Source,
    folder: Path,
    shard_size: int,
    *,
    progress: Optional[ProgressCallback] = None,
    **options: Unpack[CopyOptions],
) -> Report:
    """Writes a container anew as a set, in a folder that is there, in files of
    `shard_size` bytes at most: see lmquant-split(1)."""
    if not shard_size:
        raise ArgumentError("shard_size is 0, expected bytes of a file")
    return _copy(source, folder, shard_size, progress, options, "split")


def join(
    source: Source,
    output: Path,
    *,
    progress: Optional[ProgressCallback] = None,
    **options: Unpack[CopyOptions],
) -> Report:
    """Writes a set anew as one file: see lmquant-join(1)."""
    return _copy(source, output, 0, progress, options, "join")


def _copy(
    source: Source,
    output: Path,
    shard_size: int,
    progress: Optional[ProgressCallback],
    options: Mapping[str, Any],
    what: str,
) -> Report:
    if "shard_size" in options:
        raise TypeError("%s has no option 'shard_size'" % what)
    filled = _options.fill(
        _library.CopyOptions, {"shard_size": shard_size, **options}, what
    )
    path = _options.text(output, "the output")
    with _open(source) as (checkpoint,):
        return Work(progress).run(
            library.lmq_copy, checkpoint, path, byref(filled)
        )


def seal(
    folder: Path,
    *,
    progress: Optional[ProgressCallback] = None,
    **options: Unpack[SealOptions],
) -> Report:
    """Completes a set of which convert() wrote each file by itself, with
    `part` of `n_parts`: see lmquant-seal(1). `open` is how the source was
    opened for them."""
    filled = _options.fill(_library.SealOptions, options, "seal")
    return Work(progress).run(
        library.lmq_seal, _options.text(folder, "the folder"), byref(filled)
    )


def export(
    source: Source,
    output: Path,
    to: str,
    *,
    progress: Optional[ProgressCallback] = None,
    approve: Optional[ApproveCallback] = None,
    **options: Unpack[ExportOptions],
) -> Report:
    """Writes a checkpoint in another tool's format, `to`: see
    lmquant-export(1)."""
    filled = _options.fill(
        _library.ExportOptions, {"to": to, **options}, "export"
    )
    path = _options.text(output, "the output")
    with _open(source) as (checkpoint,):
        return Work(progress, approve).run(
            library.lmq_export, checkpoint, path, byref(filled)
        )


def verify(
    path: Path,
    *,
    alone: bool = False,
    progress: Optional[ProgressCallback] = None,
    **options: Unpack[VerifyOptions],
) -> Report:
    """Checks every byte of a container, or of a set: see lmquant-verify(1). If
    something is damaged it raises FormatError, whose `report` names each part
    if it got that far. `alone`: this file only, also if it is one of a set."""
    filled = _options.fill(_library.VerifyOptions, options, "verify")
    return Work(progress).run(
        library.lmq_verify_file if alone else library.lmq_verify,
        _options.text(path, "the path"),
        byref(filled),
    )


def diff(
    a: Source,
    b: Source,
    *,
    gates: Union[str, Sequence[str]] = (),
    progress: Optional[ProgressCallback] = None,
    **options: Unpack[DiffOptions],
) -> Report:
    """Compares two checkpoints tensor by tensor: see lmquant-diff(1). Whether
    a gate holds stands in ["gates"]."""
    filled = _options.fill(_library.DiffOptions, options, "diff")
    wanted = _options.texts(gates, "gates")

    def apply(report: c_void_p) -> None:
        n_broken, err = c_size_t(), _library.Error()
        check(
            library.lmq_gates_apply(
                report,
                (c_char_p * len(wanted))(*wanted),
                len(wanted),
                byref(n_broken),
                byref(err),
            ),
            err,
        )

    with _open(a, b) as addresses:
        return Work(progress).run(
            library.lmq_diff,
            *addresses,
            byref(filled),
            then=apply if wanted else None,
        )


def _several(judged: Union[Source, Sequence[Source]]) -> List[Source]:
    """A list of models; one alone is a list of one."""
    if isinstance(judged, (Checkpoint, str, bytes, os.PathLike)):
        return [judged]
    try:
        return list(judged)
    except TypeError:
        raise TypeError(
            "the judged model is %s, expected a path, a checkpoint or a list "
            "of them" % type(judged).__name__
        ) from None


def validate(
    reference: Source,
    judged: Union[Source, Sequence[Source]],
    *,
    progress: Optional[ProgressCallback] = None,
    **options: Unpack[ValidateOptions],
) -> Report:
    """How far is a model, or how far are several, from the reference? See
    lmquant-validate(1). Whether a gate holds stands in ["gates"] and in
    ["verdict"]. If `progress` returns False the report covers what was done
    until then. `page` is where an HTML page is written; with `part` and
    `n_parts`, the file that `lmquant merge` reads."""
    filled = _options.fill(_library.ValidateOptions, options, "validate")
    several = _several(judged)
    page, replaces = filled.page, filled.replaces
    write = (
        library.lmq_validate_write_part
        if filled.n_parts
        else library.lmq_validate_write_html
    )

    def write_page(report: c_void_p) -> None:
        err = _library.Error()
        check(write(report, page, replaces, byref(err)), err)

    then: Optional[Callable[[c_void_p], None]] = write_page if page else None
    with _open(reference, *several) as (address, *others):
        return Work(progress).run(
            library.lmq_validate_several,
            address,
            (c_void_p * len(others))(*others),
            len(others),
            byref(filled),
            also=(byref(c_int()),),
            then=then,
        )


def plan(
    source: Source,
    output: Optional[Path] = None,
    *,
    progress: Optional[ProgressCallback] = None,
    **options: Unpack[PlanningOptions],
) -> Report:
    """The best recipe under a budget, one of `target_size` (bytes),
    `target_bits` (per weight) and `target_kld`: see lmquant-plan(1). It stands
    in ["recipe"], and in `output` for `convert(..., recipe=output)`. `page` is
    where an HTML page is written; with `part` and `n_parts`, what the part has
    found, a file for the `measured` of the plan itself."""
    filled = _options.fill(_library.PlanningOptions, options, "plan")
    path = None if output is None else _options.text(output, "the output")
    page, replaces = filled.page, filled.replaces

    def write_part(report: c_void_p) -> None:
        err = _library.Error()
        write = library.lmq_plan_write_part
        check(write(report, page, replaces, byref(err)), err)

    with _open(source) as (checkpoint,):
        return Work(progress).run(
            library.lmq_plan_recipe,
            checkpoint,
            path,
            byref(filled),
            then=write_part if page and filled.n_parts else None,
        )


def bench(
    source: Source,
    *,
    progress: Optional[ProgressCallback] = None,
    **options: Unpack[BenchOptions],
) -> Report:
    """How fast is it here? See lmquant-bench(1)."""
    filled = _options.fill(_library.BenchOptions, options, "bench")
    with _open(source) as (checkpoint,):
        return Work(progress).run(
            library.lmq_bench, checkpoint, byref(filled)
        )
