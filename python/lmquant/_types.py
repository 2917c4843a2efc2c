"""Options by name, for those who look a program over before it runs.

The names are those of the members of the structures in lmquant.h;
tests/test_header.py holds them together.
"""

from __future__ import annotations

from typing import Sequence, TypedDict, Union

from ._options import Path


class OpenOptions(TypedDict, total=False):
    tokenizer: Path
    config: Path
    rope_theta: float
    norm_eps: float
    is_copied: bool


class ConvertOptions(TypedDict, total=False):
    group_size: int
    scales: str
    method: str
    tie: str
    on_nonfinite: str
    layout: str
    is_dry_run: bool
    replaces: bool
    is_compressed: bool
    threads: int
    forces_tokenizer: bool
    shard_size: int
    has_digests: bool
    recipe: Path
    rules: Union[str, Sequence[str]]
    resumes: bool
    encoding: str
    n_parts: int
    part: int
    seals: bool
    calibration: Union[Path, Sequence[Path]]
    calibration_tokens: int
    context: int
    splits_documents: bool
    damping: float
    rotates: bool
    mend: float
    writes_text: bool


class CopyOptions(TypedDict, total=False):
    replaces: bool
    threads: int


class SealOptions(TypedDict, total=False):
    source: Path
    open: OpenOptions
    replaces: bool
    threads: int


class ExportOptions(TypedDict, total=False):
    type: str
    shard_size: int
    replaces: bool
    threads: int


class InspectOptions(TypedDict, total=False):
    has_tensors: bool
    tensor: str
    has_stats: bool


class VerifyOptions(TypedDict, total=False):
    threads: int
    against: str


class DiffOptions(TypedDict, total=False):
    threads: int


class SessionOptions(TypedDict, total=False):
    context: int
    batch: int
    kv: str
    activations: str
    all_logits: bool
    threads: int


class SamplerOptions(TypedDict, total=False):
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    typical: float
    repeat_penalty: float
    frequency_penalty: float
    presence_penalty: float
    penalty_window: int
    seed: int


class BenchOptions(TypedDict, total=False):
    session: SessionOptions
    n_prefill: int
    n_decode: int
    rounds: int
    depth: int


class ValidateOptions(TypedDict, total=False):
    texts: Union[Path, Sequence[Path]]
    tokens: Path
    session: SessionOptions
    stride: int
    score: str
    max_tokens: int
    splits_documents: bool
    memory: int
    has_attribution: bool
    has_floor: bool
    gates: Union[str, Sequence[str]]
    skips_checksums: bool
    page: Path
    replaces: bool
    baseline: Path
    task: Path
    emulations: Union[str, Sequence[str]]
    part: int
    n_parts: int
    attribution: str


class PlanningOptions(TypedDict, total=False):
    texts: Union[Path, Sequence[Path]]
    tokens: Path
    session: SessionOptions
    max_tokens: int
    target_size: int
    target_bits: float
    target_kld: float
    memory: int
    skips_checksums: bool
    page: Path
    replaces: bool
    part: int
    n_parts: int
    measured: Union[Path, Sequence[Path]]
    measured_are_texts: bool
    rotates: bool
    chooses_kv: bool
    splits_documents: bool
