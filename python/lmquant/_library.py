"""The shared library: what lmquant.h declares of it, and where it is.

tests/test_header.py holds all of this against the header and the compiler.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import shlex
import sys
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_char,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int32,
    c_long,
    c_size_t,
    c_uint,
    c_uint64,
    c_void_p,
)
from typing import Any, Dict, List, Tuple

from ._errors import LibraryError

# ---- enum lmq_status and others ----

OK = 0
ERR_ARG = 1
ERR_IO = 2
ERR_NOMEM = 3
ERR_FORMAT = 4
ERR_UNSUPPORTED = 5
ERR_NONFINITE = 6
ERR_CANCELLED = 7

REPORT_JSON = 0

TEXT_PLAIN = 1
TEXT_SPECIAL = 2

# ---- Structures ----


class Error(Structure):
    c_name = "lmq_error"
    _fields_ = [
        ("status", c_int),
        ("offset", c_uint64),
        ("path", c_char * 256),
        ("option", c_char * 32),
        ("message", c_char * 512),
        ("hint", c_char * 256),
    ]


ReportFunction = CFUNCTYPE(c_int, c_void_p, c_char_p, c_uint64, c_uint64)
ApproveFunction = CFUNCTYPE(c_int, c_void_p, c_void_p)


class Progress(Structure):
    c_name = "lmq_progress"
    _fields_ = [
        ("report", ReportFunction),
        ("context", c_void_p),
        ("approve", ApproveFunction),
    ]


class Options(Structure):
    """A structure that begins with its size. Who has a list in it (POINTER of
    c_char_p) has its length beside it, under the same name behind "n_"."""

    c_name = ""


class OpenOptions(Options):
    c_name = "lmq_open_options"
    _fields_ = [
        ("size", c_size_t),
        ("tokenizer", c_char_p),
        ("config", c_char_p),
        ("rope_theta", c_double),
        ("norm_eps", c_double),
        ("is_copied", c_int),
    ]


class ConvertOptions(Options):
    c_name = "lmq_convert_options"
    _fields_ = [
        ("size", c_size_t),
        ("group_size", c_uint),
        ("scales", c_char_p),
        ("method", c_char_p),
        ("tie", c_char_p),
        ("on_nonfinite", c_char_p),
        ("layout", c_char_p),
        ("is_dry_run", c_int),
        ("replaces", c_int),
        ("is_compressed", c_int),
        ("threads", c_int),
        ("forces_tokenizer", c_int),
        ("shard_size", c_uint64),
        ("has_digests", c_int),
        ("recipe", c_char_p),
        ("rules", POINTER(c_char_p)),
        ("n_rules", c_size_t),
        ("resumes", c_int),
        ("encoding", c_char_p),
        ("n_parts", c_uint),
        ("part", c_uint),
        ("seals", c_int),
        ("calibration", POINTER(c_char_p)),
        ("n_calibration", c_size_t),
        ("calibration_tokens", c_size_t),
        ("context", c_size_t),
        ("splits_documents", c_int),
        ("damping", c_double),
        ("rotates", c_int),
        ("peers", c_void_p),
        ("mend", c_double),
        ("writes_text", c_int),
    ]


class ExportOptions(Options):
    c_name = "lmq_export_options"
    _fields_ = [
        ("size", c_size_t),
        ("to", c_char_p),
        ("type", c_char_p),
        ("shard_size", c_uint64),
        ("replaces", c_int),
        ("threads", c_int),
    ]


class CopyOptions(Options):
    c_name = "lmq_copy_options"
    _fields_ = [
        ("size", c_size_t),
        ("shard_size", c_uint64),
        ("replaces", c_int),
        ("threads", c_int),
    ]


class SealOptions(Options):
    c_name = "lmq_seal_options"
    _fields_ = [
        ("size", c_size_t),
        ("source", c_char_p),
        ("open", POINTER(OpenOptions)),
        ("replaces", c_int),
        ("threads", c_int),
    ]


class InspectOptions(Options):
    c_name = "lmq_inspect_options"
    _fields_ = [
        ("size", c_size_t),
        ("has_tensors", c_int),
        ("tensor", c_char_p),
        ("has_stats", c_int),
    ]


class VerifyOptions(Options):
    c_name = "lmq_verify_options"
    _fields_ = [
        ("size", c_size_t),
        ("threads", c_int),
        ("against", c_char_p),
    ]


class DiffOptions(Options):
    c_name = "lmq_diff_options"
    _fields_ = [
        ("size", c_size_t),
        ("threads", c_int),
    ]


class SessionOptions(Options):
    c_name = "lmq_session_options"
    _fields_ = [
        ("size", c_size_t),
        ("context", c_size_t),
        ("batch", c_size_t),
        ("kv", c_char_p),
        ("activations", c_char_p),
        ("all_logits", c_int),
        ("threads", c_int),
    ]


class SamplerOptions(Options):
    c_name = "lmq_sampler_options"
    _fields_ = [
        ("size", c_size_t),
        ("temperature", c_double),
        ("top_k", c_long),
        ("top_p", c_double),
        ("min_p", c_double),
        ("typical", c_double),
        ("repeat_penalty", c_double),
        ("frequency_penalty", c_double),
        ("presence_penalty", c_double),
        ("penalty_window", c_long),
        ("seed", c_uint64),
    ]


class BenchOptions(Options):
    c_name = "lmq_bench_options"
    _fields_ = [
        ("size", c_size_t),
        ("session", POINTER(SessionOptions)),
        ("n_prefill", c_size_t),
        ("n_decode", c_size_t),
        ("rounds", c_int),
        ("depth", c_size_t),
    ]


class ValidateOptions(Options):
    c_name = "lmq_validate_options"
    _fields_ = [
        ("size", c_size_t),
        ("texts", POINTER(c_char_p)),
        ("n_texts", c_size_t),
        ("tokens", c_char_p),
        ("session", POINTER(SessionOptions)),
        ("stride", c_size_t),
        ("score", c_char_p),
        ("max_tokens", c_size_t),
        ("splits_documents", c_int),
        ("memory", c_uint64),
        ("has_attribution", c_int),
        ("has_floor", c_int),
        ("gates", POINTER(c_char_p)),
        ("n_gates", c_size_t),
        ("skips_checksums", c_int),
        ("page", c_char_p),
        ("replaces", c_int),
        ("baseline", c_char_p),
        ("task", c_char_p),
        ("emulations", POINTER(c_char_p)),
        ("n_emulations", c_size_t),
        ("part", c_uint),
        ("n_parts", c_uint),
        ("attribution", c_char_p),
    ]


class PlanningOptions(Options):
    c_name = "lmq_planning_options"
    _fields_ = [
        ("size", c_size_t),
        ("texts", POINTER(c_char_p)),
        ("n_texts", c_size_t),
        ("tokens", c_char_p),
        ("session", POINTER(SessionOptions)),
        ("max_tokens", c_size_t),
        ("target_size", c_uint64),
        ("target_bits", c_double),
        ("target_kld", c_double),
        ("memory", c_uint64),
        ("skips_checksums", c_int),
        ("page", c_char_p),
        ("replaces", c_int),
        ("part", c_uint),
        ("n_parts", c_uint),
        ("measured", POINTER(c_char_p)),
        ("n_measured", c_size_t),
        ("measured_are_texts", c_int),
        ("rotates", c_int),
        ("chooses_kv", c_int),
        ("splits_documents", c_int),
    ]


class ChatMessage(Structure):
    c_name = "lmq_chat_message"
    _fields_ = [
        ("role", c_char_p),
        ("text", c_char_p),
        ("n", c_size_t),
        ("tokens", POINTER(c_int32)),
        ("n_tokens", c_size_t),
    ]


STRUCTURES = (
    Error,
    Progress,
    ChatMessage,
    OpenOptions,
    ConvertOptions,
    CopyOptions,
    SealOptions,
    ExportOptions,
    InspectOptions,
    VerifyOptions,
    DiffOptions,
    SessionOptions,
    SamplerOptions,
    BenchOptions,
    ValidateOptions,
    PlanningOptions,
)

# ---- Functions ----
#
# Objects are plain addresses here; who may pass which one is the classes'
# business. c_void_p for a text that has to be freed, c_char_p for one that
# somebody owns.

_object = c_void_p
_out = POINTER(c_void_p)
_size_out = POINTER(c_size_t)
_int_out = POINTER(c_int)
_err = POINTER(Error)
_progress = POINTER(Progress)
_texts = POINTER(c_char_p)
_tokens = POINTER(c_int32)
_bytes = c_char_p
_messages = POINTER(ChatMessage)

FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    "lmq_version": (c_char_p, []),
    "lmq_instruction_set": (c_char_p, []),
    "lmq_sandbox": (c_uint, [_texts, c_size_t]),
    "lmq_report_free": (None, [_object]),
    "lmq_report_text": (c_int, [_object, c_int, _out, _err]),
    "lmq_text_free": (None, [c_void_p]),
    "lmq_gates_apply": (
        c_int,
        [_object, _texts, c_size_t, _size_out, _err],
    ),
    "lmq_checkpoint_open": (
        c_int,
        [_bytes, POINTER(OpenOptions), _out, _err],
    ),
    "lmq_checkpoint_close": (None, [_object]),
    "lmq_convert": (
        c_int,
        [_object, _bytes, POINTER(ConvertOptions), _progress, _out, _err],
    ),
    "lmq_copy": (
        c_int,
        [_object, _bytes, POINTER(CopyOptions), _progress, _out, _err],
    ),
    "lmq_seal": (
        c_int,
        [_bytes, POINTER(SealOptions), _progress, _out, _err],
    ),
    "lmq_export": (
        c_int,
        [_object, _bytes, POINTER(ExportOptions), _progress, _out, _err],
    ),
    "lmq_inspect": (c_int, [_object, POINTER(InspectOptions), _out, _err]),
    "lmq_verify": (
        c_int,
        [_bytes, POINTER(VerifyOptions), _progress, _out, _err],
    ),
    "lmq_verify_file": (
        c_int,
        [_bytes, POINTER(VerifyOptions), _progress, _out, _err],
    ),
    "lmq_diff": (
        c_int,
        [_object, _object, POINTER(DiffOptions), _progress, _out, _err],
    ),
    "lmq_model_open": (c_int, [_object, _out, _err]),
    "lmq_model_close": (None, [_object]),
    "lmq_model_vocabulary": (c_size_t, [_object]),
    "lmq_model_context": (c_size_t, [_object]),
    "lmq_session_new": (
        c_int,
        [_object, POINTER(SessionOptions), _out, _err],
    ),
    "lmq_session_free": (None, [_object]),
    "lmq_session_eval": (c_int, [_object, _tokens, c_size_t, _err]),
    "lmq_session_logits": (POINTER(c_float), [_object, c_size_t]),
    "lmq_session_position": (c_size_t, [_object]),
    "lmq_session_context": (c_size_t, [_object]),
    "lmq_session_rewind": (None, [_object, c_size_t]),
    "lmq_session_slide": (c_int, [_object, c_size_t, _err]),
    "lmq_tokenizer_from_checkpoint": (c_int, [_object, _out, _err]),
    "lmq_tokenizer_from_path": (
        c_int,
        [_bytes, POINTER(OpenOptions), _out, _err],
    ),
    "lmq_tokenizer_close": (None, [_object]),
    "lmq_tokenizer_kind": (c_char_p, [_object]),
    "lmq_tokenizer_size": (c_size_t, [_object]),
    "lmq_tokenizer_ends": (c_int, [_object, c_int32]),
    "lmq_tokenizer_token": (
        c_int,
        [_object, c_int32, _out, _size_out, _int_out, _err],
    ),
    "lmq_tokenize": (
        c_int,
        [_object, _bytes, c_size_t, c_uint, POINTER(_tokens), _size_out, _err],
    ),
    "lmq_tokens_free": (None, [_tokens]),
    "lmq_detokenize": (
        c_int,
        [_object, _tokens, c_size_t, c_uint, _out, _size_out, _err],
    ),
    "lmq_detokenizer_new": (c_int, [_object, c_uint, _out, _err]),
    "lmq_detokenizer_free": (None, [_object]),
    "lmq_detokenizer_next": (
        c_int,
        [_object, c_int32, _out, _size_out, _err],
    ),
    "lmq_chat_open": (c_int, [_object, _object, _bytes, _out, _err]),
    "lmq_chat_close": (None, [_object]),
    "lmq_chat_name": (c_char_p, [_object]),
    "lmq_chat_format_at": (c_char_p, [c_size_t, _texts]),
    "lmq_chat_tokens": (
        c_int,
        [_object, _messages, c_size_t, POINTER(_tokens), _size_out, _err],
    ),
    "lmq_chat_text": (
        c_int,
        [_object, _messages, c_size_t, _out, _size_out, _err],
    ),
    "lmq_chat_ends": (c_int, [_object, c_int32]),
    "lmq_chat_stop": (c_char_p, [_object]),
    "lmq_chat_text_flags": (c_uint, [_object]),
    "lmq_sampler_new": (
        c_int,
        [POINTER(SamplerOptions), c_size_t, _out, _err],
    ),
    "lmq_sampler_free": (None, [_object]),
    "lmq_sampler_accept": (None, [_object, c_int32]),
    "lmq_sampler_pick": (c_int32, [_object, POINTER(c_float)]),
    "lmq_bench": (
        c_int,
        [_object, POINTER(BenchOptions), _progress, _out, _err],
    ),
    "lmq_validate_several": (
        c_int,
        [
            _object,
            _out,
            c_size_t,
            POINTER(ValidateOptions),
            _progress,
            _out,
            _int_out,
            _err,
        ],
    ),
    "lmq_validate_write_html": (c_int, [_object, _bytes, c_int, _err]),
    "lmq_validate_write_part": (c_int, [_object, _bytes, c_int, _err]),
    "lmq_plan_recipe": (
        c_int,
        [_object, _bytes, POINTER(PlanningOptions), _progress, _out, _err],
    ),
    "lmq_plan_write_html": (c_int, [_object, _bytes, c_int, _err]),
    "lmq_plan_write_part": (c_int, [_object, _bytes, c_int, _err]),
}

# ---- Finding it ----

_VARIABLE = "LMQUANT_LIBRARY"
_NAME = "liblmquant.dylib" if sys.platform == "darwin" else "liblmquant.so.0"


def _candidates() -> List[str]:
    """Where it may be: in the prefix of this Python (a virtual environment's,
    or conda's), where the system's loader looks, where its linker does."""
    given = os.environ.get(_VARIABLE)
    if given:
        return [given]
    prefixed = os.path.join(sys.prefix, "lib", _NAME)
    found = ctypes.util.find_library("lmquant")
    return (
        ([prefixed] if os.path.exists(prefixed) else [])
        + [_NAME]
        + ([found] if found and found != _NAME else [])
    )


def _open() -> Tuple[ctypes.CDLL, str]:
    reasons = []
    for candidate in _candidates():
        try:
            return ctypes.CDLL(candidate), candidate
        except OSError as error:
            reasons.append(str(error))
    raise LibraryError(
        "the library liblmquant cannot be loaded: " + "; ".join(reasons),
        hint="install lmquant (./configure && make && make install, and "
        "ldconfig so that the system finds it), with --prefix=%s for this "
        "Python alone, or let %s name the library (/usr/local/lib/%s)"
        % (shlex.quote(sys.prefix), _VARIABLE, _NAME),
    )


def _load() -> Tuple[ctypes.CDLL, str]:
    library, name = _open()
    for symbol, (result, arguments) in FUNCTIONS.items():
        try:
            function = getattr(library, symbol)
        except AttributeError:
            raise LibraryError(
                "%s has no %s" % (name, symbol),
                hint="it is no liblmquant, or one of another release than "
                "this module",
            ) from None
        function.restype = result
        function.argtypes = arguments
    return library, name


library, name = _load()


def library_version() -> str:
    """The version of the library in use, "0.2.0"."""
    version: bytes = library.lmq_version()
    return version.decode()


def instruction_set() -> str:
    """The instruction set that its kernels use, "avx2"."""
    isa: bytes = library.lmq_instruction_set()
    return isa.decode()
