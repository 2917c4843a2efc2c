"""Quantize checkpoints of language models, validate and run them.

    import lmquant

    lmquant.convert("llama/", "llama.lmq")
    report = lmquant.validate("llama/", "llama.lmq", texts=["held-out.txt"])
    print(report["kld"]["mean"])
    with lmquant.open("llama.lmq") as checkpoint:
        print(*checkpoint.generate("Once upon a time", 80), sep="")

The module is liblmquant(3) in Python: reports are dicts, errors exceptions,
options keyword arguments under the names of lmquant.h.
"""

from ._chat import Chat, chat_formats
from ._checkpoint import Checkpoint, open
from ._commands import (
    Source,
    bench,
    convert,
    diff,
    export,
    inspect,
    join,
    plan,
    seal,
    split,
    validate,
    verify,
)
from ._errors import (
    ArgumentError,
    BusyError,
    CancelledError,
    ClosedError,
    Error,
    FormatError,
    LibraryError,
    NonFiniteError,
    OutOfMemoryError,
    SystemRefusedError,
    UnsupportedError,
)
from ._library import instruction_set, library_version
from ._session import Model, Sampler, Session
from ._text import Detokenizer, Tokenizer

__version__ = "0.2.0"

__all__ = [
    "ArgumentError",
    "BusyError",
    "CancelledError",
    "Chat",
    "Checkpoint",
    "ClosedError",
    "Detokenizer",
    "Error",
    "FormatError",
    "LibraryError",
    "Model",
    "NonFiniteError",
    "OutOfMemoryError",
    "Sampler",
    "Session",
    "Source",
    "SystemRefusedError",
    "Tokenizer",
    "UnsupportedError",
    "bench",
    "chat_formats",
    "convert",
    "diff",
    "export",
    "inspect",
    "instruction_set",
    "join",
    "library_version",
    "open",
    "plan",
    "seal",
    "split",
    "validate",
    "verify",
]

