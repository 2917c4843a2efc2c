#!/usr/bin/env python3
"""A real language model in this engine and in two others.

usage: real_models.py LMQUANT TEXT MODEL.gguf [--llama BIN] [--tokens N]

The model, as llama.cpp's GGUF has it, is read by lmquant, by llama.cpp (the
folder BIN has llama-perplexity and llama-completion) and, unpacked by
transformers and saved as bfloat16 safetensors, by transformers. Prints
perplexities over the same windows, how fast each was, and the text that each
continues greedily; then what `lmquant convert` makes of it, and where its
exports land. TEXT is English prose; windows of 512 tokens, of which the second
half counts, as llama-perplexity has it.
"""
import argparse
import json
import math
import os
import re
import subprocess
import tempfile
import time

os.environ["HF_HUB_OFFLINE"] = "1"
PROMPTS = ["The capital of France is", "Once upon a time, there was a"]
CTX = 512


def run(*command):
    start = time.time()
    done = subprocess.run(command, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise SystemExit(f"{command}: {done.returncode}\n{done.stderr}")
    return done.stdout, done.stderr, time.time() - start


def row(name, perplexity, seconds, tokens, note=""):
    print(f"{name:34} {perplexity:9.4f} {tokens / seconds:8.1f} tok/s  {note}",
          flush=True)


def judge(lmquant, reference, judged, text, *more):
    out, _, seconds = run(lmquant, "validate", reference, judged, text, "-q",
                          "--json", "--ctx", str(CTX), "--score",
                          "second-half", *more)
    return json.loads(out), seconds


def llama_perplexity(folder, model, text):
    _, err, seconds = run(os.path.join(folder, "llama-perplexity"), "-m",
                          model, "-f", text, "-c", str(CTX), "-b", str(CTX),
                          "-fa", "off", "-ctk", "f32", "-ctv", "f32")
    return float(re.search(r"PPL = ([0-9.]+)", err).group(1)), seconds


def transformers_perplexity(folder, ids, bos):
    """The mean over the second halves, as llama-perplexity computes it."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    total = n = 0
    start = time.time()
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
    return model, math.exp(total / n), time.time() - start


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
    out, _, _ = run(lmquant, "run", "-q", "--json", "-t", "0", "-n", str(n),
                    model, prompt)
    return json.loads(out)["text"]


def llama_greedy(folder, model, prompt, n):
    out, _, _ = run(os.path.join(folder, "llama-completion"), "-m", model,
                    "-p", prompt, "-n", str(n), "--temp", "0", "-no-cnv",
                    "--no-display-prompt", "--simple-io", "-fa", "off")
    return out.removesuffix(" [end of text]\n\n").removesuffix("\n\n")


def common(a, b):
    """How many characters two texts have in common from the beginning."""
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return f"{n} of {min(len(a), len(b))} characters the same"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("lmquant")
    parser.add_argument("text")
    parser.add_argument("model")
    parser.add_argument("--llama", help="folder of llama.cpp's programs")
    parser.add_argument("--tokens", type=int, default=4096,
                        help="about so many tokens of the text (4096)")
    options = parser.parse_args()
    lmquant = os.path.abspath(options.lmquant)
    gguf = os.path.abspath(options.model)
    work = tempfile.TemporaryDirectory()

    def path(name):
        return os.path.join(work.name, name)

    with open(options.text, encoding="utf-8") as file:
        words = file.read(options.tokens * 4)
    with open(path("text"), "w", encoding="utf-8") as file:
        file.write(words)

    print(f"# {os.path.basename(gguf)}, windows of {CTX}, second halves")
    _, _, seconds = run(lmquant, "convert", "-q", gguf, path("q.lmq"))
    sizes = [os.path.getsize(name) / 1e6 for name in (gguf, path("q.lmq"))]
    print(f"convert: {sizes[0]:.1f} MB -> {sizes[1]:.1f} MB, {seconds:.1f} s")
    own, seconds = judge(lmquant, gguf, path("q.lmq"), path("text"))
    n = own["tokens"]
    row("lmquant, float32", own["reference"]["ppl"], seconds / 2, n,
        "(half of the time of validate)")
    row("lmquant, int8 of it", own["model"]["ppl"], seconds / 2, n,
        f"mean KLD {own['kld']['mean']:.2g}, top-1 "
        f"{100 * own['top1_agreement']:.1f} %"
        if "top1_agreement" in own else
        f"mean KLD {own['kld']['mean']:.2g}")

    run(lmquant, "export", "-q", "--to", "gguf", "--type", "f32", gguf,
        path("f32.gguf"))
    run(lmquant, "export", "-q", "--to", "gguf", path("q.lmq"),
        path("q.gguf"))
    if options.llama:
        for name, file, note in (
                ("llama.cpp, our f32 export", path("f32.gguf"), ""),
                ("llama.cpp, the file itself", gguf,
                 "(rounds activations to 8 bits)"),
                ("llama.cpp, our Q8_0 export", path("q.gguf"), "(likewise)")):
            ppl, seconds = llama_perplexity(options.llama, file, path("text"))
            row(name, ppl, seconds, n, note)

    unpack(gguf, path("hf"))
    out, _, _ = run(lmquant, "tokenize", gguf, path("text"), "--ids", "-q")
    ids = [int(word) for word in re.findall(r"[0-9]+", out)]
    from transformers import AutoTokenizer
    theirs = AutoTokenizer.from_pretrained(path("hf"))(words).input_ids
    print("tokens: " + ("the same ids as transformers'" if ids == theirs else
                        f"{len(ids)} here, {len(theirs)} in transformers"))
    bos = json.load(open(path("hf/config.json")))["bos_token_id"]
    adds_bos = ids[0] == bos
    unpacked, seconds = judge(lmquant, path("hf"), path("q.lmq"),
                              path("text"), "--tokenizer", path(
                                  "hf/tokenizer.json"))
    row("lmquant, unpacked to bf16", unpacked["reference"]["ppl"],
        seconds / 2, n)
    model, ppl, seconds = transformers_perplexity(
        path("hf"), ids, bos if adds_bos else None)
    row("transformers, unpacked to bf16", ppl, seconds, n)

    for prompt in PROMPTS:
        print(f"\n{prompt!r}, greedily:")
        ours = greedy(lmquant, gguf, prompt, 40)
        texts = [("lmquant, float32", ours),
                 ("lmquant, int8", greedy(lmquant, path("q.lmq"), prompt, 40))]
        if options.llama:
            texts.append(("llama.cpp, f32", llama_greedy(
                options.llama, path("f32.gguf"), prompt, 40)))
        texts.append(("transformers", transformers_greedy(
            model, path("hf"), prompt, 40)))
        for name, text in texts:
            print(f"  {name:18} {common(ours, text):38} {text[:60]!r}")


if __name__ == "__main__":
    main()
