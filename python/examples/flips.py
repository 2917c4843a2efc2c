"""flips.py A.jsonl B.jsonl: which answers changed from one model to another?

Both are samples of one multiple-choice task as `lm-eval --log_samples` writes
them. Scores hide answers that change both ways; flips do not.
"""

import json
import math
import sys


def answers(path):
    """For each question: its target, and the likeliest choice."""
    with open(path, encoding="utf-8") as file:
        samples = [json.loads(line) for line in file]
    found = {}
    for sample in samples:
        scores = [float(response[0]) for response in sample["filtered_resps"]]
        found[sample["doc_hash"], sample["doc_id"]] = (
            int(sample["target"]),
            scores.index(max(scores)),
        )
    return found


def main(path_a, path_b):
    a, b = answers(path_a), answers(path_b)
    if a.keys() != b.keys():
        sys.exit("flips.py: these are not answers to the same questions")
    pairs = [(a[key][0], a[key][1], b[key][1]) for key in a]
    n = len(pairs)
    lost = sum(x == target != y for target, x, y in pairs)
    gained = sum(y == target != x for target, x, y in pairs)
    changed = sum(x != y for _, x, y in pairs)
    # Whether as many were gained as lost: both of the same chance, exactly.
    tail = sum(math.comb(lost + gained, k) for k in range(min(lost, gained) + 1))
    p = min(1.0, 2 * tail / 2 ** (lost + gained))
    right = [sum(t == x for t, x, _ in pairs), sum(t == y for t, _, y in pairs)]
    print("%d questions, %d and %d answered right" % (n, *right))
    print(
        "%d answers changed: %d lost, %d gained (exact p = %.3g), %d from one "
        "wrong one to another"
        % (changed, lost, gained, p, changed - lost - gained)
    )


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
