#!/usr/bin/env python3
"""The logits that llama.cpp computes from a GGUF, by llama-cpp-python.

    llama_logits.py [--batch N] MODEL.gguf OUTPUT < IDS

IDS are numbers of tokens; OUTPUT becomes their logits in float32, row by row.
A program of its own, since llama.cpp ends the process where an assertion of its
own does not hold. Keys and values are float32, without flash attention.
"""
import argparse
import ctypes
import sys

import llama_cpp as llama
import numpy as np


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("model")
    parser.add_argument("output")
    options = parser.parse_args()
    ids = [int(word) for word in sys.stdin.read().split()]
    size = options.batch or len(ids)
    told = []

    # The text is told in pieces; lines that are not of errors are left out.
    @llama.llama_log_callback
    def tell(level, text, _):
        told.append((level, text.decode(errors="replace")))
    llama.llama_log_set(tell, ctypes.c_void_p(0))
    llama.llama_backend_init()
    how = llama.llama_model_default_params()
    how.n_gpu_layers = 0
    how.use_mmap = False
    model = llama.llama_model_load_from_file(options.model.encode(), how)
    if not model:
        errors = [text.strip() for level, text in told if level == 4]
        sys.exit("not loaded: " + (errors[0] if errors else "no reason"))
    how = llama.llama_context_default_params()
    how.n_ctx = how.n_batch = how.n_ubatch = max(len(ids), 32)
    how.n_threads = how.n_threads_batch = 1
    how.type_k = how.type_v = 0
    how.flash_attn_type = 0
    how.swa_full = True
    context = llama.llama_init_from_model(model, how)
    if not context:
        sys.exit("no context")
    width = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
    rows = []
    for at in range(0, len(ids), size):
        part = ids[at:at + size]
        batch = llama.llama_batch_init(len(part), 0, 1)
        batch.n_tokens = len(part)
        for i, token in enumerate(part):
            batch.token[i] = token
            batch.pos[i] = at + i
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = 1
        if llama.llama_decode(context, batch) != 0:
            sys.exit("not computed")
        for i in range(len(part)):
            rows.append(np.ctypeslib.as_array(
                llama.llama_get_logits_ith(context, i), (width,)).copy())
        llama.llama_batch_free(batch)
    np.stack(rows).astype("<f4").tofile(options.output)


if __name__ == "__main__":
    main()
