/*
 * export_gguf_remarks.c - what becomes of a tokenizer in a GGUF.
 *
 * The file is a good one: these are remarks on what its words cannot say, and
 * on what llama.cpp makes of them.
 */
#include "config.h"

#include "convert/export/export_gguf_remarks.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "runtime/tokenizer/tokenizer.h"

/* llama.cpp knows Phi 3 by the name of the model: then these must be there, and
 * special tokens take white space. */
static void
remark_on_name(const struct lmq_gguf_words *v, struct lmq_notes *notes)
{
    static const char *const wanted[] = {"<unk>", "<s>", "</s>",
                                         "<|endoftext|>"};
    bool is_so_called = false, has_all = true;

    for (const char *p = v->given->name; *p != '\0'; p++)
        is_so_called |= strncasecmp(p, "phi3", 4) == 0 ||
                        strncasecmp(p, "phi-3", 5) == 0;
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        has_all &= lmq_pipeline_find(
                       v->t, lmq_chars(wanted[i], strlen(wanted[i]))) >= 0;
    if (is_so_called && !has_all)
        lmq_notes_add(notes,
                      "llama.cpp takes '%.100s' for Phi 3, and does not load "
                      "it without that model's special tokens: give it another "
                      "name",
                      v->given->name);
    if (!is_so_called && v->n_particular > 0)
        lmq_notes_add(notes,
                      "llama.cpp lets special tokens take the white space "
                      "behind them only if the model's name has phi-3, which "
                      "'%.100s' has not",
                      v->given->name);
}

/* What llama.cpp takes for granted of a kind. */
static void
remark_on_kind(const struct lmq_gguf_words *v, struct lmq_notes *notes)
{
    bool is_llama = strcmp(v->model, "llama") == 0;
    bool is_t5 = strcmp(v->model, "t5") == 0;
    bool is_gpt2 = strcmp(v->model, "gpt2") == 0;
    bool has_bytes = v->t->vocab.byte_ids['\n'] >= 0;
    uint32_t end = is_llama ? 2 : is_t5 ? 1 : is_gpt2 ? 11 : UINT32_MAX;

    if (v->ends.n == 0 && end < v->n)
        lmq_notes_add(notes,
                      "llama.cpp takes token %" PRIu32 " for one that ends a "
                      "text, as neither the model nor its tokenizer names any",
                      end);
    if (is_llama && !has_bytes)
        lmq_notes_add(notes,
                      "llama.cpp breaks off at a character without a piece, "
                      "often at a line feed, as there are no pieces of bytes");
    if (is_llama && v->drops_spaces)
        lmq_notes_add(notes,
                      "the tokenizer drops extra spaces, which llama.cpp "
                      "keeps: there, texts with two in a row become other "
                      "tokens");
    if (is_t5 && v->drops_spaces && !v->adds_space)
        lmq_notes_add(notes,
                      "llama.cpp puts a space before each text, as the "
                      "tokenizer drops extra ones, though it puts none there");
    if (is_t5 && has_bytes && v->t->model.falls_back_to_bytes)
        lmq_notes_add(notes,
                      "llama.cpp has no bytes for a character without a piece, "
                      "as this tokenizer has, but the unknown token");
}

void
lmq_gguf_remark(const struct lmq_gguf_words *v, struct lmq_notes *notes)
{
    size_t n = lmq_tokenizer_size(v->t);

    if (n < v->n)
        lmq_notes_add(notes,
                      "%zu tokens beyond the tokenizer's %zu are written as "
                      "unused ones",
                      v->n - n, n);
    if (v->ends.n > LMQ_GGUF_N_ENDS)
        lmq_notes_add(notes,
                      "GGUF names %d tokens that end a text, the other %zu "
                      "are lost",
                      LMQ_GGUF_N_ENDS, v->ends.n - LMQ_GGUF_N_ENDS);
    if (v->composes)
        lmq_notes_add(notes,
                      "the tokenizer puts letters and their marks together "
                      "(NFC), which is not said in GGUF: texts that have them "
                      "apart become other tokens there");
    if (v->n_lost > 0)
        lmq_notes_add(notes,
                      "of %zu added tokens GGUF cannot say whether they take "
                      "the white space beside them, count as words of their "
                      "own only, or are looked for as the normalizer makes "
                      "them (with a space before, say): there it is otherwise",
                      v->n_lost);
    remark_on_name(v, notes);
    if (v->is_near)
        lmq_notes_add(notes,
                      "no pre-tokenizer that GGUF names cuts all texts as this "
                      "tokenizer does: '%s' is near, and takes rare "
                      "neighbours of signs, spaces and letters apart otherwise",
                      v->pre);
    if (v->pre != NULL && strcmp(v->pre, "gpt-4o") == 0)
        lmq_notes_add(notes,
                      "llama.cpp cuts words at combining marks where this "
                      "tokenizer does not: there Hindi, Tamil or Thai become "
                      "other tokens");
    if (v->pre != NULL && strcmp(v->pre, "tiny_aya") == 0)
        lmq_notes_add(notes,
                      "llama.cpp groups digits that stand before a letter "
                      "otherwise than this tokenizer");
    remark_on_kind(v, notes);
}
