#!/usr/bin/env python3
"""One real model in the forms that people serve, made by their own libraries.

usage: forms.py LMQUANT TEXT MODEL.gguf FOLDER [--llama BIN]

MODEL is unpacked by transformers into FOLDER/bf16 (the reference), and packed
again: by llama-quantize (Q8_0, Q4_K_M), by auto-round (GPTQ and AWQ with 4
bits), by mlx-lm (8 and 4 bits), by bitsandbytes (nf4), by lmquant. Then
`lmquant validate` judges all of them over TEXT in one run. What is in FOLDER
already is not made again.
"""
import argparse
import os
import resource
import subprocess
import sys
import time

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def made_by_auto_round(source, target, form):
    from auto_round import AutoRound

    # Rounded to nearest: no calibration, so no text is needed.
    AutoRound(source, bits=4, group_size=64, sym=form == "gptq", iters=0,
              disable_opt_rtn=True, device_map="cpu").quantize_and_save(
                  target + ".new", format="auto_gptq" if form == "gptq" else
                  "auto_awq")
    # It makes a folder in the folder.
    inner = [entry.path for entry in os.scandir(target + ".new")]
    is_nested = len(inner) == 1 and os.path.isdir(inner[0])
    os.rename(inner[0] if is_nested else target + ".new", target)


def made_by_mlx(source, target, bits):
    from mlx_lm import convert

    convert(source, target, quantize=True, q_bits=bits, q_group_size=64)


def made_by_bitsandbytes(source, target):
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    AutoModelForCausalLM.from_pretrained(
        source, quantization_config=BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4")
        ).save_pretrained(target)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("lmquant", "text", "model", "folder"):
        parser.add_argument(name)
    parser.add_argument("--llama", help="folder of llama.cpp's programs")
    parser.add_argument("--max-tokens", default="4096")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)

    def path(name):
        return os.path.join(options.folder, name)

    def run(*command):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    if not os.path.exists(path("bf16")):
        from real_models import unpack
        unpack(os.path.abspath(options.model), path("bf16"))
    forms = [("lmquant.lmq", lambda to: run(
        options.lmquant, "convert", "-q", path("bf16"), to))]
    if options.llama:
        quantize = os.path.join(options.llama, "llama-quantize")
        if not os.path.exists(path("f32.gguf")):
            run(options.lmquant, "export", "-q", "--to", "gguf", "--type",
                "f32", options.model, path("f32.gguf"))
        for kind in ("Q8_0", "Q4_K_M"):
            forms.append((kind + ".gguf", lambda to, kind=kind: run(
                quantize, path("f32.gguf"), to, kind)))
    forms += [
        ("gptq-4", lambda to: made_by_auto_round(path("bf16"), to, "gptq")),
        ("awq-4", lambda to: made_by_auto_round(path("bf16"), to, "awq")),
        ("mlx-8", lambda to: made_by_mlx(path("bf16"), to, 8)),
        ("mlx-4", lambda to: made_by_mlx(path("bf16"), to, 4)),
        ("bitsandbytes-nf4",
         lambda to: made_by_bitsandbytes(path("bf16"), to)),
    ]
    judged = []
    for name, make in forms:
        try:
            if not os.path.exists(path(name)):
                make(path(name))
            judged.append(path(name))
        except Exception as error:  # a library that is missing, or refuses
            print(f"{name}: not made: {error}", file=sys.stderr)
    start = time.time()
    subprocess.run([options.lmquant, "validate", path("bf16"), *judged,
                    "--text", options.text, "--max-tokens",
                    options.max_tokens, "--tokenizer",
                    path("bf16/tokenizer.json"), "-f", "-o",
                    path("report.html")], check=True)
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    print(f"{time.time() - start:.0f} s; {most:.2f} GB at most")


if __name__ == "__main__":
    main()
