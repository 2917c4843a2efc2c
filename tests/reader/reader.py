#!/usr/bin/env python3
"""reader.py - a reader of .lmq files by a stranger.

It was written from lmq(5) and lmq-model(5) alone, with the schema of the
metadata and the README.md of the files beside them, by somebody who had not
seen the program. What it found unclear was mended in the pages, so change it
only where these change. tests/formats/lmq/test_reader.sh runs it.

    reader.py list FILE            tensors of a file, or of the set that it is of
    reader.py verify FILE...       all rules of sections 22 and 23 of lmq(5)
    reader.py logits FILE TOKEN... the logits after each token
    reader.py conformance FOLDER   the files that its README.md lists
    reader.py compare FOLDER       each NAME.lmq with NAME.txt beside it

As a module: open_model(path) gives a Container; its tensors[name].floats() are
elements as float32, logits(container, tokens) are computed in double precision.
What breaks a rule raises Refused, with the rule's number; what may be read but
not computed with, or not read, raises NotUnderstood.
"""

import os
import re
import sys
import zlib

import numpy as np

from lmq_container import NotUnderstood, Refused, open_model
from lmq_forward import Computation, Description, logits


def sensitivity(computation, tokens, found):
    """How far logits go if elements go by half of their last bit, as those do whose
    computation is rounded to float32."""
    signs = np.random.default_rng(1)
    for key, x in computation.cache.items():
        if x is not None:
            computation.cache[key] = x * (1 + 2**-24 * signs.choice([-1, 1], x.shape))
    moved = computation.logits(tokens)
    return float((abs(moved - found).max(axis=1) / abs(found).max(axis=1)).max())


def compare(path):
    """Compares a file with the .txt beside it: (complaints, worst difference or None)."""
    complaints, tokens, expected = [], None, []
    container = open_model(path)
    container.verify()
    with open(path[:-4] + '.txt', encoding='utf-8') as f:
        lines = f.read().splitlines()
    listed = 0
    for line in lines:
        if re.match('tokens( -?[0-9]+)*$', line):
            tokens = [int(t) for t in line.split()[1:]]
        elif tokens is not None and line.startswith('logits '):
            expected.append([float(x) for x in line.split()[1:]])
        elif line.strip():
            listed += 1
            name, *dims, crc = line.rsplit(' ', 1 if line.endswith(' unreadable') else 2)
            try:
                t = container.tensors[name]
                found = f'{zlib.crc32(t.floats().tobytes()):08x}'
            except NotUnderstood:
                found = 'unreadable'
            shape = ['x'.join(map(str, t.dims)) or '-'] if dims else []
            if (shape, found) != (dims, crc):
                complaints.append(f'{name}: {shape} {found}, expected {dims} {crc}')
    if listed != len(container.tensors):
        complaints.append(f'{len(container.tensors)} tensors, {listed} expected')
    try:
        computation = Computation(container)
    except NotUnderstood as e:
        if tokens is not None:
            complaints.append(f'not computed: {e}')
        return complaints, None, e.rule
    if tokens is None:
        return complaints + ['computed, but no logits are expected'], None, ''
    found, expected = computation.logits(tokens), np.array(expected)
    worst = float((abs(found - expected).max(axis=1) / abs(expected).max(axis=1)).max())
    if not worst <= 1e-4 + 10 * sensitivity(computation, tokens, found):
        complaints.append(f'logits differ by {worst:.2g} of the largest')
    return complaints, worst, ''


def refusal(path):
    """The rule for which a file is refused: opened, verified, computed; or None."""
    try:
        container = open_model(path)
        container.verify()
        if container.model is not None:
            Description(container).check()
    except NotUnderstood:
        return None
    except Refused as e:
        return e.rule
    return None


def conformance(folder):
    """All files that README.md lists, against what it says of them."""
    with open(os.path.join(folder, 'README.md'), encoding='utf-8') as f:
        rows = re.findall(r'^\| `([^`]+\.lmq)` \| *(\w*) *\|', f.read(), re.M)
    names = {n for n in os.listdir(folder) if n.endswith('.lmq')}
    wrong = [f'{n}: not in both README.md and folder'
             for n in names ^ {r[0] for r in rows}]
    worst, computed, counts = 0, 0, {'read': 0, 'refused': 0}
    for name, rule in rows:
        path = os.path.join(folder, name)
        if name.startswith(('bad-', 'unsupported-')):
            found = refusal(path)
            counts['refused'] += 1
            complaints = [] if found == rule else [
                f'refused for {found}, expected {rule}']
        else:
            counts['read'] += 1
            try:
                complaints, difference, found = compare(path)
            except Refused as e:
                complaints, difference, found = [f'refused for {e}'], None, ''
            if difference is not None:
                worst, computed = max(worst, difference), computed + 1
            elif rule and rule != found:
                complaints.append(f'not computed for {found}, expected {rule}')
        wrong += [f'{name}: {c}' for c in complaints]
    for line in wrong:
        print(line)
    print(f'{counts["read"]} files read, {computed} computed '
          f'(worst difference {worst:.2g}), {counts["refused"]} refused; '
          f'{len(wrong)} complaints')
    return not wrong


def compare_folder(folder):
    wrong, worst, n = 0, 0, 0
    for name in sorted(os.listdir(folder)):
        if not name.endswith('.lmq'):
            continue
        n += 1
        try:
            complaints, difference, _ = compare(os.path.join(folder, name))
        except Refused as e:
            complaints, difference = [f'refused for {e}'], None
        worst = max(worst, difference or 0)
        wrong += bool(complaints)
        for c in complaints:
            print(f'{name}: {c}')
    print(f'{n} files, {n - wrong} agree, worst difference {worst:.2g} '
          'of the largest logit')
    return n > 0 and not wrong


def main(arguments):
    if len(arguments) < 2 or arguments[0] not in (
            'list', 'verify', 'logits', 'conformance', 'compare'):
        sys.exit(__doc__)
    command, path, *rest = arguments
    try:
        if command == 'conformance':
            return not conformance(path)
        if command == 'compare':
            return not compare_folder(path)
        if command == 'logits':
            for row in logits(open_model(path), [int(t) for t in rest]):
                print(*(f'{x:.6g}' for x in row))
            return 0
        for p in [path] + rest:
            container = open_model(p)
            if command == 'verify':
                container.verify()
                print(f'{p}: intact')
            else:
                for t in container.tensors.values():
                    print(ascii(t.name)[1:-1], 'x'.join(map(str, t.dims)) or '-',
                          t.unknown() and f'unknown {t.unknown()}' or '')
            for w in (w for f in container.files for w in f.warnings):
                print(f'{p}: warning: {w}')
    except (Refused, OSError) as e:
        sys.exit(f'{path}: {e}')
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
