#!/usr/bin/env python3
"""A real language model in this engine and in two others.

usage: real_models.py BUILD TEXT MODEL.gguf [--llama BIN] [--tokens N]
       real_models.py --speed BUILD TEXT MODEL.gguf [--llama BIN]

The model, as llama.cpp's GGUF has it, is read by lmquant, by llama.cpp (the
folder BIN has llama-perplexity and llama-completion) and, unpacked by
transformers and saved as bfloat16 safetensors, by transformers. Prints
perplexities over the same windows, what `lmquant convert` makes of it, and
where its exports land; and the text that each continues greedily. Where two
texts part, the two likeliest tokens of this engine are shown, and by how much
the first is ahead. TEXT is English prose; windows of 512 tokens, of which the
second half counts, as llama-perplexity has it.

--speed measures tokens per second instead, of a prompt and of what follows:
the int8 container here, its Q8_0 export in llama.cpp, and float32 in
transformers take turns, so that what else the machine does hits all of them.
"""
import argparse
import json
import math
import os
import re
import statistics
import subprocess
import tempfile
import time

import numpy as np

from against import logits

os.environ["HF_HUB_OFFLINE"] = "1"
PROMPTS = ["The capital of France is", "Once upon a time, there was a"]
CTX = 512
N_PROMPT, N_GENERATED, ROUNDS = 256, 32, 5  # of --speed
# Where only results count: several threads of llama.cpp wait for each other in
# loops, which takes ages on a machine that others use too; and its kernels for
# repacked weights have crashed.
LLAMA_PLAIN = ["-t", "1", "-tb", "1", "--no-repack"]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise SystemExit(f"{command}: {done.returncode}\n{done.stderr}")
    return done.stdout, done.stderr


def row(name, perplexity, note=""):
    print(f"{name:34} {perplexity:9.4f}  {note}", flush=True)


def judge(lmquant, reference, judged, text, *more):
    out, _ = run(lmquant, "validate", reference, judged, text, "-q", "--json",
                 "--ctx", str(CTX), "--score", "second-half", *more)
    return json.loads(out)


def llama_perplexity(folder, model, text):
    out, err = run(os.path.join(folder, "llama-perplexity"), "-m", model, "-f",
                   text, "-c", str(CTX), "-b", str(CTX), "-fa", "off", "-ctk",
                   "f32", "-ctv", "f32", *LLAMA_PLAIN)
    return float(re.search(r"PPL = ([0-9.]+)", out + err).group(1))


def transformers_perplexity(folder, ids, bos):
    """The mean over the second halves, as llama-perplexity computes it."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    total = n = 0
    with torch.no_grad():
        for first in range(0, len(ids) - CTX + 1, CTX):
            window = list(ids[first:first + CTX])
            targets = window[1:]
            if bos is not None:
                window[0] = bos
            logits = model(torch.tensor([window])).logits[0, :-1].double()
            nll = torch.nn.functional.cross_entropy(
                logits, torch.tensor(targets), reduction="none")
            half = nll[CTX // 2:]
            total += half.sum().item()
            n += len(half)
    return model, math.exp(total / n)


def unpack(model, folder):
    """To bfloat16 safetensors, by transformers' own reader of GGUF."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    name = {"pretrained_model_name_or_path": os.path.dirname(model),
            "gguf_file": os.path.basename(model)}
    model = AutoModelForCausalLM.from_pretrained(**name, dtype=torch.bfloat16)
    # What has been unpacked is quantized no more, and may be saved.
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(**name).save_pretrained(folder)


def transformers_greedy(model, folder, prompt, n):
    import torch
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(prompt, return_tensors="pt").input_ids
    with torch.no_grad():
        out = model.generate(ids, max_new_tokens=n, do_sample=False,
                             repetition_penalty=1.0)
    return tokenizer.decode(out[0][ids.shape[1]:], skip_special_tokens=True)


def greedy(lmquant, model, prompt, n):
    """Text, and the tokens of the prompt and of it."""
    out, _ = run(lmquant, "run", "-q", "--json", "-t", "0", "-n", str(n),
                 model, prompt)
    found = json.loads(out)
    return found["text"], found["prompt_tokens"], found["tokens"]


def llama_greedy(folder, model, prompt, n):
    out, _ = run(os.path.join(folder, "llama-completion"), "-m", model, "-p",
                 prompt, "-n", str(n), "--temp", "0", "-no-cnv",
                 "--no-display-prompt", "--simple-io", "-fa", "off",
                 *LLAMA_PLAIN)
    return re.sub(r" \[end of text\]\s*$|\n\n$", "", out)


def decode(lmquant, model, ids):
    return subprocess.run(
        [lmquant, "tokenize", "-q", "--decode", model], text=True, check=True,
        input=" ".join(map(str, ids)), capture_output=True).stdout


def parting(build, model, ours, theirs):
    """How many characters two texts have in common from the beginning; and
    where they part, what this engine thought of it."""
    text, prompt, tokens = ours
    least = min(len(text), len(theirs))
    n = next((i for i in range(least) if text[i] != theirs[i]), least)
    if n == least:
        return f"the same {n} characters"

    def decoded(ids):
        whole, before = (decode(build + "/lmquant", model, x)
                         for x in (prompt + ids, prompt))
        return whole[len(before):]

    same = max(i for i in range(len(tokens))
               if text[:n].startswith(decoded(tokens[:i])))
    last = np.float64(logits(build, model, prompt + tokens[:same])[-1])
    first, second = (int(i) for i in np.argsort(last)[:-3:-1])
    chances = np.exp(last - last.max()) / np.exp(last - last.max()).sum()
    return (f"parts after {same} tokens, {n} characters: "
            f"{decoded([first])!r} {chances[first]:.4f}, "
            f"{decoded([second])!r} {chances[second]:.4f} "
            f"(logits {last[first] - last[second]:.2g} apart)")


# ---- How fast ----


def lmquant_speed(lmquant, model, threads):
    out, _ = run(lmquant, "bench", "-q", "--json", "-j", str(threads), "-p",
                 str(N_PROMPT), "-n", str(N_GENERATED), model)
    found = json.loads(out)
    return (found["prefill"]["tokens_per_s"], found["decode"]["tokens_per_s"])


def llama_speed(folder, model, threads):
    command = [os.path.join(folder, "llama-bench"), "-m", model, "-p",
               str(N_PROMPT), "-n", str(N_GENERATED), "-t", str(threads),
               "-r", "2", "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode < 0:  # see LLAMA_PLAIN
        print("llama-bench crashed: again with --repack 0, which is slower")
        done = subprocess.run(command + ["--repack", "0"], check=True,
                              capture_output=True, text=True)
    return tuple(test["avg_ts"] for test in json.loads(done.stdout))


def transformers_speed(model):
    import torch

    start = time.time()
    with torch.no_grad():
        state = model(torch.full((1, N_PROMPT), 5), use_cache=True)
        middle = time.time()
        for _ in range(N_GENERATED):
            state = model(state.logits[:, -1:].argmax(-1), use_cache=True,
                          past_key_values=state.past_key_values)
    return (N_PROMPT / (middle - start), N_GENERATED / (time.time() - middle))


def speed(lmquant, llama, path):
    import torch
    from transformers import AutoModelForCausalLM

    threads = len(os.sched_getaffinity(0))
    model = AutoModelForCausalLM.from_pretrained(path("hf"),
                                                 dtype=torch.float32)
    engines = {"lmquant, int8": lambda: lmquant_speed(
        lmquant, path("q.lmq"), threads)}
    if llama:
        engines["llama.cpp, our Q8_0 export"] = lambda: llama_speed(
            llama, path("q.gguf"), threads)
    engines["transformers, float32"] = lambda: transformers_speed(model)
    found = {name: [] for name in engines}
    for _ in range(ROUNDS):
        for name, measure in engines.items():
            found[name].append(measure())
    print(f"{threads} threads, load {os.getloadavg()[0]:.1f}, medians of "
          f"{ROUNDS} turns; tokens per second, and of that of lmquant")
    for name in engines:
        line = f"{name:34}"
        for i, kind in enumerate(("prompt", "after it")):
            rates = [turn[i] for turn in found[name]]
            shares = [a[i] / b[i] for a, b in
                      zip(found[name], found["lmquant, int8"])]
            line += (f" {kind} {statistics.median(rates):8.1f} "
                     f"({statistics.median(shares):.2f})")
        print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("text")
    parser.add_argument("model")
    parser.add_argument("--llama", help="folder of llama.cpp's programs")
    parser.add_argument("--tokens", type=int, default=4096,
                        help="about so many tokens of the text (4096)")
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    lmquant = build + "/lmquant"
    gguf = os.path.abspath(options.model)
    work = tempfile.TemporaryDirectory()

    def path(name):
        return os.path.join(work.name, name)

    with open(options.text, encoding="utf-8") as file:
        words = file.read(options.tokens * 4)
    with open(path("text"), "w", encoding="utf-8") as file:
        file.write(words)

    run(lmquant, "convert", "-q", gguf, path("q.lmq"))
    run(lmquant, "export", "-q", "--to", "gguf", path("q.lmq"),
        path("q.gguf"))
    unpack(gguf, path("hf"))
    if options.speed:
        return speed(lmquant, options.llama, path)

    print(f"# {os.path.basename(gguf)}, windows of {CTX}, second halves")
    sizes = [os.path.getsize(name) / 1e6 for name in (gguf, path("q.lmq"))]
    print(f"convert: {sizes[0]:.1f} MB -> {sizes[1]:.1f} MB")
    own = judge(lmquant, gguf, path("q.lmq"), path("text"))
    print(f"{own['tokens']} tokens")
    row("lmquant, float32", own["reference"]["ppl"])
    row("lmquant, int8 of it", own["model"]["ppl"],
        f"mean KLD {own['kld']['mean']:.2g}, top-1 "
        f"{100 * own['top1_agreement']:.1f} %")
    run(lmquant, "export", "-q", "--to", "gguf", "--type", "f32", gguf,
        path("f32.gguf"))
    if options.llama:
        for name, file, note in (
                ("llama.cpp, our f32 export", path("f32.gguf"), ""),
                ("llama.cpp, the file itself", gguf,
                 "(rounds activations to 8 bits)"),
                ("llama.cpp, our Q8_0 export", path("q.gguf"), "(likewise)")):
            row(name, llama_perplexity(options.llama, file, path("text")),
                note)

    out, _ = run(lmquant, "tokenize", gguf, path("text"), "--ids", "-q")
    ids = [int(word) for word in re.findall(r"[0-9]+", out)]
    from transformers import AutoTokenizer
    theirs = AutoTokenizer.from_pretrained(path("hf"))(words).input_ids
    print("tokens: " + ("the same ids as transformers'" if ids == theirs else
                        f"{len(ids)} here, {len(theirs)} in transformers"))
    bos = json.load(open(path("hf/config.json")))["bos_token_id"]
    adds_bos = ids[0] == bos
    unpacked = judge(lmquant, path("hf"), path("q.lmq"), path("text"),
                     "--tokenizer", path("hf/tokenizer.json"))
    row("lmquant, unpacked to bf16", unpacked["reference"]["ppl"])
    model, ppl = transformers_perplexity(
        path("hf"), ids, bos if adds_bos else None)
    row("transformers, unpacked to bf16", ppl)

    for prompt in PROMPTS:
        print(f"\n{prompt!r}, greedily, beside lmquant in float32:")
        ours = greedy(lmquant, gguf, prompt, 40)
        print(f"  {'lmquant, float32':18} {ours[0]!r}")
        texts = [("lmquant, int8",
                  greedy(lmquant, path("q.lmq"), prompt, 40)[0])]
        if options.llama:
            texts.append(("llama.cpp, f32", llama_greedy(
                options.llama, path("f32.gguf"), prompt, 40)))
            texts.append(("llama.cpp, the file", llama_greedy(
                options.llama, gguf, prompt, 40)))
        texts.append(("transformers", transformers_greedy(
            model, path("hf"), prompt, 40)))
        for name, text in texts:
            print(f"  {name:18} " + parting(build, gguf, ours, text),
                  flush=True)


if __name__ == "__main__":
    main()
