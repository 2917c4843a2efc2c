#!/usr/bin/env python3
"""Conversations in every chat format, against transformers' own rendering of
the templates that models publish: as text, and as tokens.

Templates: llama.cpp's models/templates and those quoted in its
tests/test-chat-template.cpp (--llama PATH), those within GGUF files (--gguf),
single files (--template), and for families that are in none of these the
templates of this file, written down as published.

    python3 tests/against/chat_formats.py --build BUILD --llama LLAMA.CPP
"""
import argparse
import collections
import datetime
import glob
import json
import logging
import os
import re
import subprocess
import sys
import tempfile

try:
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
    from tokenizers import decoders, trainers
    from transformers import PreTrainedTokenizerFast
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

logging.disable(logging.CRITICAL)

# Of families whose templates are in no file at hand.
PUBLISHED = {
    "zephyr-7b-beta": (
        "{% for message in messages %}\n{% if message['role'] == 'user' %}\n"
        "{{ '<|user|>\n' + message['content'] + eos_token }}\n"
        "{% elif message['role'] == 'system' %}\n"
        "{{ '<|system|>\n' + message['content'] + eos_token }}\n"
        "{% elif message['role'] == 'assistant' %}\n"
        "{{ '<|assistant|>\n'  + message['content'] + eos_token }}\n"
        "{% endif %}\n{% if loop.last and add_generation_prompt %}\n"
        "{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}"),
    "Llama-2-7b-chat": (
        "{% if messages[0]['role'] == 'system' %}{% set loop_messages = "
        "messages[1:] %}{% set system_message = messages[0]['content'] %}"
        "{% else %}{% set loop_messages = messages %}{% set system_message = "
        "false %}{% endif %}{% for message in loop_messages %}{% if "
        "(message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('roles must alternate') }}{% endif %}{% if "
        "loop.index0 == 0 and system_message != false %}{% set content = "
        "'<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + "
        "message['content'] %}{% else %}{% set content = message['content'] "
        "%}{% endif %}{% if message['role'] == 'user' %}{{ bos_token + "
        "'[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] "
        "== 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}"
        "{% endif %}{% endfor %}"),
    "Llama-4-Scout": (
        "{{- bos_token }}\n{%- if messages[0]['role'] == 'system' %}\n"
        "    {%- set system_message = messages[0]['content']|trim %}\n"
        "    {%- set messages = messages[1:] %}\n{%- else %}\n"
        "    {%- set system_message = \"\" %}\n{%- endif %}\n"
        "{%- if system_message %}\n"
        "    {{- \"<|header_start|>system<|header_end|>\\n\\n\" }}\n"
        "    {{- system_message }}\n    {{- \"<|eot|>\" }}\n{%- endif %}\n"
        "{%- for message in messages %}\n"
        "    {{- '<|header_start|>' + message['role'] + '<|header_end|>\\n\\n'"
        " }}\n    {{- message['content'] }}\n    {{- \"<|eot|>\" }}\n"
        "{%- endfor %}\n{%- if add_generation_prompt %}\n"
        "    {{- '<|header_start|>assistant<|header_end|>\\n\\n' }}\n"
        "{%- endif %}"),
    "gemma-3": (
        "{{ bos_token }}\n{%- if messages[0]['role'] == 'system' -%}\n"
        "    {%- set first_user_prefix = messages[0]['content'] + '\n\n' -%}\n"
        "    {%- set loop_messages = messages[1:] -%}\n{%- else -%}\n"
        "    {%- set first_user_prefix = \"\" -%}\n"
        "    {%- set loop_messages = messages -%}\n{%- endif -%}\n"
        "{%- for message in loop_messages -%}\n"
        "    {%- if (message['role'] == 'assistant') -%}\n"
        "        {%- set role = \"model\" -%}\n    {%- else -%}\n"
        "        {%- set role = message['role'] -%}\n    {%- endif -%}\n"
        "    {{ '<start_of_turn>' + role + '\n' + (first_user_prefix if "
        "loop.first else \"\") }}\n    {%- if true -%}\n"
        "        {{ message['content'] | trim }}\n    {%- endif -%}\n"
        "    {{ '<end_of_turn>\n' }}\n{%- endfor -%}\n"
        "{%- if add_generation_prompt -%}\n"
        "    {{'<start_of_turn>model\n'}}\n{%- endif -%}\n"),
    "Phi-4-mini-instruct": (
        "{% for message in messages %}{% if message['role'] == 'system' and "
        "'tools' in message and message['tools'] is not none %}{{ '<|' + "
        "message['role'] + '|>' + message['content'] + '<|tool|>' + "
        "message['tools'] + '<|/tool|>' + '<|end|>' }}{% else %}{{ '<|' + "
        "message['role'] + '|>' + message['content'] + '<|end|>' }}{% endif %}"
        "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}"
        "{% else %}{{ eos_token }}{% endif %}"),
    "OLMo-2-Instruct": (
        "{{ bos_token }}{% for message in messages %}{% if message['role'] == "
        "'system' %}{{ '<|system|>\\n' + message['content'] + '\\n' }}{% elif "
        "message['role'] == 'user' %}{{ '<|user|>\\n' + message['content'] + "
        "'\\n' }}{% elif message['role'] == 'assistant' %}{% if not loop.last "
        "%}{{ '<|assistant|>\\n'  + message['content'] + eos_token + '\\n' }}"
        "{% else %}{{ '<|assistant|>\\n'  + message['content'] + eos_token }}"
        "{% endif %}{% endif %}{% if loop.last and add_generation_prompt %}"
        "{{ '<|assistant|>\\n' }}{% endif %}{% endfor %}"),
    "ERNIE-4.5-0.3B": (
        "{%- if not add_generation_prompt is defined -%}{%- set "
        "add_generation_prompt = true -%}{%- endif -%}{%- if not cls_token is "
        "defined -%}{%- set cls_token = \"<|begin_of_sentence|>\" -%}"
        "{%- endif -%}{%- if not sep_token is defined -%}{%- set sep_token = "
        "\"<|end_of_sentence|>\" -%}{%- endif -%}{{- cls_token -}}"
        "{%- for message in messages -%}{%- if message[\"role\"] == \"user\" "
        "-%}{{- \"User: \" + message[\"content\"] + \"\\n\" -}}{%- elif "
        "message[\"role\"] == \"assistant\" -%}{{- \"Assistant: \" + "
        "message[\"content\"] + sep_token -}}{%- elif message[\"role\"] == "
        "\"system\" -%}{{- message[\"content\"] + \"\\n\" -}}{%- endif -%}"
        "{%- endfor -%}{%- if add_generation_prompt -%}{{- \"Assistant: \" -}}"
        "{%- endif -%}"),
    "Hunyuan-4B-Instruct": (
        "{% if messages[0]['role'] == 'system' %}{% set loop_messages = "
        "messages[1:] %}{% set system_message = messages[0]['content'] %}"
        "<｜hy_begin▁of▁sentence｜>{{ system_message }}"
        "<｜hy_place▁holder▁no▁3｜>{% else %}{% set loop_messages = messages %}"
        "<｜hy_begin▁of▁sentence｜>{% endif %}{% for message in loop_messages "
        "%}{% if message['role'] == 'user' %}<｜hy_User｜>"
        "{{ message['content'] }}{% elif message['role'] == 'assistant' %}"
        "<｜hy_Assistant｜>{{ message['content'] }}<｜hy_place▁holder▁no▁2｜>"
        "{% endif %}{% endfor %}{% if add_generation_prompt %}"
        "<｜hy_Assistant｜>{% else %}<｜hy_place▁holder▁no▁8｜>{% endif %}"),
    "EXAONE-3.0-7.8B-Instruct": (
        "{% for message in messages %}{% if loop.first and message['role'] != "
        "'system' %}{{ '[|system|][|endofturn|]\\n' }}{% endif %}{{ '[|' + "
        "message['role'] + '|]' + message['content'] }}{% if message['role'] "
        "== 'user' %}{{ '\\n' }}{% else %}{{ '[|endofturn|]\\n' }}{% endif %}"
        "{% endfor %}{% if add_generation_prompt %}{{ '[|assistant|]' }}"
        "{% endif %}"),
    "Mistral-7B-Instruct-v0.1": (
        "{{ bos_token }}{% for message in messages %}{% if (m"
        "essage['role'] == 'user') != (loop.index0 % 2 == 0) "
        "%}{{ raise_exception('Conversation roles must altern"
        "ate user/assistant/user/assistant/...') }}{% endif %"
        "}{% if message['role'] == 'user' %}{{ '[INST] ' + me"
        "ssage['content'] + ' [/INST]' }}{% elif message['rol"
        "e'] == 'assistant' %}{{ message['content'] + eos_tok"
        "en + ' ' }}{% else %}{{ raise_exception('Only user a"
        "nd assistant roles are supported!') }}{% endif %}{% "
        "endfor %}"),
    "SOLAR-10.7B-Instruct": (
        "{% for message in messages %}{% if message['role'] ="
        "= 'system' %}{% if message['content']%}{{'### System"
        ":\n' + message['content']+'\n\n'}}{% endif %}{% elif me"
        "ssage['role'] == 'user' %}{{'### User:\n' + message['"
        "content']+'\n\n'}}{% elif message['role'] == 'assistan"
        "t' %}{{'### Assistant:\n'  + message['content']}}{% e"
        "ndif %}{% if loop.last and add_generation_prompt %}{"
        "{ '### Assistant:\n' }}{% endif %}{% endfor %}"),
    "h2o-danube-1.8b-chat": (
        "{% for message in messages %}{% if message['role'] ="
        "= 'user' %}{{ '<|prompt|>' + message['content'] + eo"
        "s_token }}{% elif message['role'] == 'system' %}{{ '"
        "<|system|>' + message['content'] + eos_token }}{% el"
        "if message['role'] == 'assistant' %}{{ '<|answer|>' "
        " + message['content'] + eos_token }}{% endif %}{% if"
        " loop.last and add_generation_prompt %}{{ '<|answer|"
        ">' }}{% endif %}{% endfor %}"),
    "CodeLlama-70b-Instruct": (
        "{% if messages[0]['role'] == 'system' %}{% set user_"
        "index = 1 %}{% else %}{% set user_index = 0 %}{% end"
        "if %}{% for message in messages %}{% if (message['ro"
        "le'] == 'user') != ((loop.index0 + user_index) % 2 ="
        "= 0) %}{{ raise_exception('Conversation roles must a"
        "lternate user/assistant/user/assistant/...') }}{% en"
        "dif %}{% if loop.index0 == 0 %}{{ '<s>' }}{% endif %"
        "}{% set content = 'Source: ' + message['role'] + '\n\n"
        " ' + message['content'] | trim %}{{ content + ' <ste"
        "p> ' }}{% endfor %}{{'Source: assistant\nDestination:"
        " user\n\n '}}"),
    "SmolVLM-Instruct": (
        "<|im_start|>{% for message in messages %}{{message['"
        "role'] | capitalize}}{% if message['content'][0]['ty"
        "pe'] == 'image' %}{{':'}}{% else %}{{': '}}{% endif "
        "%}{% for line in message['content'] %}{% if line['ty"
        "pe'] == 'text' %}{{line['text']}}{% elif line['type'"
        "] == 'image' %}{{ '<image>' }}{% endif %}{% endfor %"
        "}<end_of_utterance>\n{% endfor %}{% if add_generation"
        "_prompt %}{{ 'Assistant:' }}{% endif %}"),
    "dots.llm1.inst": (
        "{%- if messages[0]['role'] == 'system' -%}<|system|>"
        "{{ messages[0]['content'] }}<|endofsystem|>{%- set s"
        "tart_idx = 1 -%}{%- else -%}<|system|>You are a help"
        "ful assistant.<|endofsystem|>{%- set start_idx = 0 -"
        "%}{%- endif -%}{%- for idx in range(start_idx, messa"
        "ges|length) -%}{%- if messages[idx]['role'] == 'user"
        "' -%}<|userprompt|>{{ messages[idx]['content'] }}<|e"
        "ndofuserprompt|>{%- elif messages[idx]['role'] == 'a"
        "ssistant' -%}<|response|>{{ messages[idx]['content']"
        " }}<|endofresponse|>{%- endif -%}{%- endfor -%}{%- i"
        "f add_generation_prompt and messages[-1]['role'] == "
        "'user' -%}<|response|>{%- endif -%}"),
    "Nemotron-Mini-4B-Instruct": (
        "{{'<extra_id_0>System'}}{% for message in messages %"
        "}{% if message['role'] == 'system' %}{{'\n' + message"
        "['content'].strip()}}{% if tools or contexts %}{{'\n'"
        "}}{% endif %}{% endif %}{% endfor %}{{'\n\n'}}{% for m"
        "essage in messages %}{% if message['role'] == 'user'"
        " %}{{ '<extra_id_1>User\n' + message['content'].strip"
        "() + '\n' }}{% elif message['role'] == 'assistant' %}"
        "{{ '<extra_id_1>Assistant\n' + message['content'].str"
        "ip() + '\n' }}{% elif message['role'] == 'tool' %}{{ "
        "'<extra_id_1>Tool\n' + message['content'].strip() + '"
        "\n' }}{% endif %}{% endfor %}{%- if add_generation_pr"
        "ompt %}{{'<extra_id_1>Assistant\n'}}{%- endif %}"),
    "GLM-4-0414": (
        "[gMASK]<sop>{%- for msg in messages %}{%- if msg.role == 'system' %}"
        "<|system|>\n{{ msg.content }}{%- elif msg.role == 'user' %}<|user|>\n"
        "{{ msg.content }}{%- elif msg.role == 'assistant' %}<|assistant|>\n"
        "{{ msg.content }}{%- endif %}{%- endfor %}{% if "
        "add_generation_prompt %}<|assistant|>\n{% endif %}"),
}

U, A, S = "user", "assistant", "system"
TALKS = {
    "one": [(U, "Hello, who are you?")],
    "three": [(U, "What is 2 + 2?"), (A, "It is 4."), (U, "And 3 + 3?")],
    "system": [(S, "You are terse."), (U, "What is 2 + 2?"),
               (A, "4"), (U, "And 3 + 3?")],
    "white": [(S, "  You are\n terse. \n"), (U, " a  b\n\n c \t"),
              (A, "\n d\n"), (U, "\n\n\u00e9\u4f60\u597d \U0001f642")],
    "code": [(U, "```c\nint x = 1;\n```"), (A, "1. a\n2. b\n\n{% if %}'\""),
             (U, "I'll don't 12345\r\n")],
    "thought": [(U, "Why?"), (A, "<think>\nhm, well\n</think>\n\nBecause."),
                (U, "Really?")],
}
MARKS = re.compile(r"<\|[^<>|\s]{1,40}\|>|<｜[^<>｜\s]{1,40}｜>|\[/?[A-Z_]{4,}\]"
                   r"|<(?:start|end)_of_turn>|<\|?turn\|?>|<\|?channel\|?>"
                   r"|\[gMASK\]|<sop>|</?think>|<SPECIAL_\d+>|\]~!?b[\[\]]"
                   r"|<extra_id_\d+>|<end_of_utterance>|<step>"
                   r"|\[e~\[|\[\|[a-z]+\|\]|<seed:[a-z]+>")


def quoted(path):
    """The templates that llama.cpp's test has as strings."""
    source = open(path, encoding="utf-8").read()
    for case in re.finditer(r'/\* \.name= \*/ "([^"]+)"', source):
        at = source.index('"', source.index(".template_str", case.end()))
        text = ""
        while source[at] == '"':
            literal = re.compile(r'"((?:[^"\\]|\\.)*)"\s*').match(source, at)
            text += re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(
                m.group(1), m.group(1)), literal.group(1))
            at = literal.end()
        yield "test: " + case.group(1)[:44], text


def templates(options):
    if options.llama:
        for path in sorted(glob.glob(options.llama +
                                     "/models/templates/*.jinja")):
            yield (os.path.basename(path)[:-6],
                   open(path, encoding="utf-8").read())
        yield from quoted(options.llama + "/tests/test-chat-template.cpp")
    for path in options.gguf:
        import gguf
        field = gguf.GGUFReader(path).get_field("tokenizer.chat_template")
        if field is None:
            print(f"{path}: has no template")
        else:
            yield os.path.basename(path), field.contents()
    for path in options.template:
        yield os.path.basename(path), open(path, encoding="utf-8").read()
    for name, text in PUBLISHED.items():
        yield "(as published) " + name, text


def make_tokenizer(template):
    """Byte-level, with the marks of the template as special tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    words = " ".join(text for talk in TALKS.values() for _, text in talk)
    tokenizer.train_from_iterator(
        [words, template[:4000]] * 3,
        trainers.BpeTrainer(vocab_size=500, show_progress=False,
                            initial_alphabet=pre_tokenizers.ByteLevel
                            .alphabet()))
    marks = sorted(set(MARKS.findall(template)) - {"<think>", "</think>"})
    tokenizer.add_special_tokens([
        AddedToken(mark, normalized=False) for mark in ["<s>", "</s>"] + marks])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer,
                                   bos_token="<s>", eos_token="</s>",
                                   chat_template=template)


def undated(text):
    """Here a format has no date, or the one that its template falls back
    to."""
    today = datetime.datetime.now()
    text = text.replace(today.strftime("%d %b %Y"), "26 Jul 2024")
    text = text.replace(today.strftime(" Today's Date: %B %d, %Y."), "")
    text = text.replace(today.strftime(" The current date is %Y-%m-%d."), "")
    text = text.replace(today.strftime("Today Date: %d %B %Y\n"), "")
    text = re.sub(r"Current date: \d{4}-\d\d-\d\d\n", "", text)
    return re.sub(r"\nCurrent date: \d{4}-\d\d-\d\d(?=<)", "", text)


def ours(build, folder, talk):
    files = [os.path.join(folder, name)
             for name in ("tokenizer.json", "tokenizer_config.json",
                          "chat_template.jinja")]
    run = subprocess.run([build + "/tests/build/render_chat", "-", *files],
                         input=json.dumps(talk), capture_output=True,
                         text=True)
    if run.returncode == 3:
        return None
    if run.returncode != 0:
        raise RuntimeError(run.stderr)
    return json.loads(run.stdout)


def compare(build, name, template, shows):
    """(format, talks alike, talks, which differ)"""
    tokenizer = make_tokenizer(template)
    alike, n, differ, found = 0, 0, [], None
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        path = os.path.join(folder, "chat_template.jinja")
        assert open(path, encoding="utf-8", newline="").read() == template
        for key, parts in TALKS.items():
            talk = [{"role": role, "content": text} for role, text in parts]
            mine = ours(build, folder, talk)
            if mine is None:
                return None, 0, 0, []
            found = mine["format"]
            # Some know words only as parts, beside images.
            given = talk if "line['type']" not in template else [
                {"role": role, "content": [{"type": "text", "text": text}]}
                for role, text in parts]
            try:
                theirs = undated(tokenizer.apply_chat_template(
                    given, tokenize=False, add_generation_prompt=True))
            except Exception as refused:  # some have no system
                differ.append(f"{key}: refused there")
                continue
            n += 1
            ids = tokenizer(theirs, add_special_tokens=False)["input_ids"]
            if mine["text"] == theirs and mine["tokens"] == ids:
                alike += 1
            else:
                differ.append(key + ("" if mine["text"] != theirs
                                     else ": tokens"))
                if shows:
                    print(f"   {name} {key}\n      ours   {mine['text']!r}"
                          f"\n      theirs {theirs!r}")
    return found, alike, n, differ


def record(build, folder):
    """What `make check` compares: one conversation in all formats, with the
    tokenizer of tests/data/fable and the marks of the formats added."""
    fable = os.path.join(os.path.dirname(__file__), "../data/fable")
    with open(fable + "/tokenizer.json", encoding="utf-8") as f:
        tokenizer = json.load(f)
    talk = [{"role": role, "content": text} for role, text in
            [(S, "Be brief."), (U, "Tell me <|im_end|> a story."),
             (A, "Once upon a time."), (U, " And </s> then?\n")]]
    known = subprocess.run([build + "/lmquant", "run", "--chat-format=list"],
                           capture_output=True, text=True, check=True)
    names = [line.split()[0] for line in known.stdout.splitlines()]
    size = 1 + max([*tokenizer["model"]["vocab"].values(),
                    *(t["id"] for t in tokenizer["added_tokens"])])
    expected = {}
    with tempfile.TemporaryDirectory() as work:
        for is_last in (False, True):
            marks = set()
            for name in names:
                path = os.path.join(work, "tokenizer.json")
                with open(path, "w", encoding="utf-8") as f:
                    json.dump(tokenizer, f, ensure_ascii=False)
                mine = json.loads(subprocess.run(
                    [build + "/tests/build/render_chat", name, path,
                     fable + "/tokenizer_config.json"],
                    input=json.dumps(talk), capture_output=True, text=True,
                    check=True).stdout)
                marks |= set(MARKS.findall(mine["text"]))
                expected[name] = {"text": mine["text"],
                                  "tokens": mine["tokens"]}
            if not is_last:
                tokenizer["added_tokens"] += [
                    {"id": size + i, "content": mark, "single_word": False,
                     "lstrip": False, "rstrip": False, "normalized": False,
                     "special": True}
                    for i, mark in enumerate(sorted(marks - {"</think>",
                                                             "<think>"}))]
    os.makedirs(folder, exist_ok=True)
    for name, data in (("tokenizer.json", tokenizer),
                       ("talk.json", talk), ("formats.json", expected)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            json.dump(data, f, ensure_ascii=False, separators=(",", ":"))
            f.write("\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--llama", help="source of llama.cpp")
    parser.add_argument("--gguf", action="append", default=[])
    parser.add_argument("--template", action="append", default=[])
    parser.add_argument("--show", action="store_true",
                        help="what differs, in full")
    parser.add_argument("--only", default="", help="names that have this")
    parser.add_argument("--record", metavar="FOLDER",
                        help="write tests/data/chat instead")
    options = parser.parse_args()
    if options.record:
        record(options.build, options.record)
        return
    seen = collections.defaultdict(list)
    unknown = []
    for name, template in templates(options):
        if options.only not in name:
            continue
        found, alike, n, differ = compare(options.build, name, template,
                                          options.show)
        if found is None:
            unknown.append(name)
        else:
            seen[found].append((name, alike, n, differ))
    for found in sorted(seen):
        for name, alike, n, differ in seen[found]:
            print(f"| {found} | {name} | {alike} of {n} | "
                  f"{', '.join(differ)} |")
    print(f"\nnot recognised: {', '.join(unknown)}")
    rows = [row for rows in seen.values() for row in rows if row[2] > 0]
    exact = sum(row[1] == row[2] for row in rows)
    print(f"{len(rows)} templates recognised as {len(seen)} formats, {exact} of them "
          f"alike in all conversations; {len(unknown)} not recognised")


if __name__ == "__main__":
    main()
