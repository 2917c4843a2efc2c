/*
 * fable_vocab.c - writes a vocabulary in the formats of the test data.
 *
 * Encoders of both kinds must find the same ids: llama2.c joins the two
 * neighbours whose joined text has the best score, Hugging Face those whose
 * pair stands first in a list. So the score is minus the rank of the merge,
 * and the list names every pair that spells a piece, by that rank.
 */
#include "fable_vocab.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
die(const char *what, const char *where)
{
    fprintf(stderr, "fable_tokens: %s: %s\n", where, what);
    exit(1);
}

/* ---- Writing ---- */

static FILE *
create(const char *folder, const char *name)
{
    char path[1024];
    int n = snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof(path))
        die("path is too long", folder);
    FILE *f = fopen(path, "wb");
    if (f == NULL)
        die("cannot be written", path);
    return f;
}

static void
finish(FILE *f, const char *name)
{
    if (ferror(f) || fclose(f) != 0)
        die("cannot be written", name);
}

static void
put_u32le(FILE *f, uint32_t x)
{
    for (int i = 0; i < 4; i++)
        putc((int)(x >> (8 * i) & 0xff), f);
}

static void
put_f32le(FILE *f, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    put_u32le(f, bits);
}

/* ---- llama2.c ---- */

static void
token_text(const struct fable_vocab *v, int id, char *text, size_t cap)
{
    static const char *const special[] = { "<unk>", "\n<s>\n", "\n</s>\n" };
    if (id < FABLE_N_SPECIAL)
        snprintf(text, cap, "%s", special[id]);
    else if (id < FABLE_FIRST_PIECE)
        snprintf(text, cap, "<0x%02X>", (unsigned)(id - FABLE_N_SPECIAL));
    else
        snprintf(text, cap, "%s", v->text[id - FABLE_FIRST_PIECE]);
}

static void
write_bin(const struct fable_vocab *v, const char *folder)
{
    char text[FABLE_TEXT_MAX];
    size_t max_len = 0;
    FILE *f = create(folder, "tokenizer.bin");

    for (int id = 0; id < FABLE_N_TOKENS; id++) {
        token_text(v, id, text, sizeof(text));
        if (strlen(text) > max_len)
            max_len = strlen(text);
    }
    put_u32le(f, (uint32_t)max_len);
    for (int id = 0; id < FABLE_N_TOKENS; id++) {
        token_text(v, id, text, sizeof(text));
        int rank = id - FABLE_FIRST_PIECE;
        put_f32le(f, rank > 0 ? -(float)rank : 0.0f);
        put_u32le(f, (uint32_t)strlen(text));
        fwrite(text, 1, strlen(text), f);
    }
    finish(f, "tokenizer.bin");
}

/* ---- Hugging Face ---- */

static int
piece_index(const struct fable_vocab *v, const char *text, size_t len)
{
    for (int i = 0; i < FABLE_N_PIECES; i++) {
        const char *p = v->text[i];
        if (strlen(p) == len && memcmp(p, text, len) == 0)
            return i;
    }
    return -1;
}

/* As it stands inside a JSON string; spaces become U+2581. */
static void
put_json(FILE *f, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == ' ')
            fputs("\xe2\x96\x81", f);
        else if (text[i] == '"' || text[i] == '\\')
            fprintf(f, "\\%c", text[i]);
        else
            putc(text[i], f);
    }
}

static void
write_vocab(const struct fable_vocab *v, FILE *f)
{
    fputs("      \"<unk>\": 0,\n      \"<s>\": 1,\n      \"</s>\": 2", f);
    for (int i = 0; i < 256; i++)
        fprintf(f, ",\n      \"<0x%02X>\": %d", (unsigned)i,
                FABLE_N_SPECIAL + i);
    for (int i = 0; i < FABLE_N_PIECES; i++) {
        fputs(",\n      \"", f);
        put_json(f, v->text[i], strlen(v->text[i]));
        fprintf(f, "\": %d", FABLE_FIRST_PIECE + i);
    }
    putc('\n', f);
}

/*
 * SentencePiece joins any two neighbours that spell a piece, so every way to
 * cut a piece into two is a merge of its rank, as in Hugging Face's converter.
 */
static void
write_merges(const struct fable_vocab *v, FILE *f)
{
    const char *comma = "";

    for (int i = 0; i < v->n_merged; i++) {
        const char *p = v->text[i];
        size_t len = strlen(p);
        int n_cuts = 0;
        for (size_t cut = 1; cut < len; cut++) {
            int l = piece_index(v, p, cut);
            int r = piece_index(v, p + cut, len - cut);
            if (l < 0 || r < 0)
                continue;
            fprintf(f, "%s\n      \"", comma);
            put_json(f, p, cut);
            putc(' ', f);
            put_json(f, p + cut, len - cut);
            putc('"', f);
            comma = ",";
            n_cuts++;
        }
        if (n_cuts == 0)
            die("piece cannot be reached", p);
    }
    putc('\n', f);
}

static const char json_head[] =
    "{\n"
    "  \"version\": \"1.0\",\n"
    "  \"truncation\": null,\n"
    "  \"padding\": null,\n"
    "  \"added_tokens\": [\n";

static const char json_middle[] =
    "  ],\n"
    "  \"normalizer\": {\n"
    "    \"type\": \"Sequence\",\n"
    "    \"normalizers\": [\n"
    "      { \"type\": \"Prepend\", \"prepend\": \"\xe2\x96\x81\" },\n"
    "      { \"type\": \"Replace\", \"pattern\": { \"String\": \" \" }, "
    "\"content\": \"\xe2\x96\x81\" }\n"
    "    ]\n"
    "  },\n"
    "  \"pre_tokenizer\": null,\n"
    "  \"post_processor\": {\n"
    "    \"type\": \"TemplateProcessing\",\n"
    "    \"single\": [\n"
    "      { \"SpecialToken\": { \"id\": \"<s>\", \"type_id\": 0 } },\n"
    "      { \"Sequence\": { \"id\": \"A\", \"type_id\": 0 } }\n"
    "    ],\n"
    "    \"pair\": [\n"
    "      { \"SpecialToken\": { \"id\": \"<s>\", \"type_id\": 0 } },\n"
    "      { \"Sequence\": { \"id\": \"A\", \"type_id\": 0 } },\n"
    "      { \"SpecialToken\": { \"id\": \"<s>\", \"type_id\": 1 } },\n"
    "      { \"Sequence\": { \"id\": \"B\", \"type_id\": 1 } }\n"
    "    ],\n"
    "    \"special_tokens\": {\n"
    "      \"<s>\": { \"id\": \"<s>\", \"ids\": [ 1 ], "
    "\"tokens\": [ \"<s>\" ] }\n"
    "    }\n"
    "  },\n"
    "  \"decoder\": {\n"
    "    \"type\": \"Sequence\",\n"
    "    \"decoders\": [\n"
    "      { \"type\": \"Replace\", \"pattern\": { \"String\": "
    "\"\xe2\x96\x81\" }, \"content\": \" \" },\n"
    "      { \"type\": \"ByteFallback\" },\n"
    "      { \"type\": \"Fuse\" },\n"
    "      { \"type\": \"Strip\", \"content\": \" \", \"start\": 1, "
    "\"stop\": 0 }\n"
    "    ]\n"
    "  },\n"
    "  \"model\": {\n"
    "    \"type\": \"BPE\",\n"
    "    \"dropout\": null,\n"
    "    \"unk_token\": \"<unk>\",\n"
    "    \"continuing_subword_prefix\": null,\n"
    "    \"end_of_word_suffix\": null,\n"
    "    \"fuse_unk\": true,\n"
    "    \"byte_fallback\": true,\n"
    "    \"ignore_merges\": false,\n"
    "    \"vocab\": {\n";

static const char *const special_names[] = { "<unk>", "<s>", "</s>" };

static void
write_json(const struct fable_vocab *v, const char *folder)
{
    FILE *f = create(folder, "tokenizer.json");

    fputs(json_head, f);
    for (int i = 0; i < FABLE_N_SPECIAL; i++)
        fprintf(f,
                "    { \"id\": %d, \"content\": \"%s\", "
                "\"single_word\": false, \"lstrip\": false, "
                "\"rstrip\": false, \"normalized\": false, "
                "\"special\": true }%s\n",
                i, special_names[i], i + 1 < FABLE_N_SPECIAL ? "," : "");
    fputs(json_middle, f);
    write_vocab(v, f);
    fputs("    },\n    \"merges\": [", f);
    write_merges(v, f);
    fputs("    ]\n  }\n}\n", f);
    finish(f, "tokenizer.json");
}

static void
write_config(const char *folder)
{
    FILE *f = create(folder, "tokenizer_config.json");

    fputs("{\n"
          "  \"add_bos_token\": true,\n"
          "  \"add_eos_token\": false,\n"
          "  \"added_tokens_decoder\": {\n", f);
    for (int i = 0; i < FABLE_N_SPECIAL; i++)
        fprintf(f,
                "    \"%d\": { \"content\": \"%s\", \"lstrip\": false, "
                "\"normalized\": false, \"rstrip\": false, "
                "\"single_word\": false, \"special\": true }%s\n",
                i, special_names[i], i + 1 < FABLE_N_SPECIAL ? "," : "");
    fputs("  },\n"
          "  \"bos_token\": \"<s>\",\n"
          "  \"clean_up_tokenization_spaces\": false,\n"
          "  \"eos_token\": \"</s>\",\n"
          "  \"legacy\": true,\n"
          "  \"model_max_length\": 256,\n"
          "  \"pad_token\": null,\n"
          "  \"sp_model_kwargs\": {},\n"
          "  \"tokenizer_class\": \"LlamaTokenizer\",\n"
          "  \"unk_token\": \"<unk>\"\n"
          "}\n", f);
    finish(f, "tokenizer_config.json");
}

void
fable_vocab_write(const struct fable_vocab *vocab, const char *folder)
{
    write_bin(vocab, folder);
    write_json(vocab, folder);
    write_config(folder);
}
