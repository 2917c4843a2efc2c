"""The questions, for fables.yaml."""

import json
import pathlib

import datasets


def load(**_):
    path = pathlib.Path(__file__).with_name("fables.jsonl")
    lines = path.read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line) for line in lines]
    return {"test": datasets.Dataset.from_list(questions)}
