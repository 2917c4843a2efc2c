/*
 * fuzz_charsmap.c - any bytes as a table of normalization rules and, behind
 * it, a text: what comes out stays within what it may be.
 *
 * The last byte of the input says how many bytes before it are the text, the
 * bit above whether it is SentencePiece's way or Hugging Face's.
 */
#include "config.h"

#include <stdlib.h>

#include "runtime/tokenizer/text/tok_normal.h"
#include "tests/fuzz/fuzz.h"

#define MOST 4096

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct lmq_normal_step step = {0};
    struct lmq_buffer out = {.most = MOST};
    struct lmq_error err;

    if (n < 2)
        return 0;
    size_t n_text = bytes[n - 1] & 0x7f;
    if (n_text > n - 1)
        n_text = n - 1;
    size_t n_table = n - 1 - n_text;
    step.kind = bytes[n - 1] & 0x80 ? LMQ_NORMAL_SENTENCEPIECE
                                    : LMQ_NORMAL_CHARSMAP;
    struct lmq_regex_scratch *scratch = lmq_regex_scratch_new(n_text);
    if (scratch != NULL &&
        lmq_charsmap_open(&step.charsmap, lmq_chars(bytes, n_table), &err) ==
            LMQ_OK)
        lmq_normal_apply(&step, scratch, lmq_chars(bytes + n_table, n_text),
                         &out, &err);
    if (out.n > MOST)
        abort();
    lmq_regex_scratch_free(scratch);
    lmq_buffer_free(&out);
    lmq_normal_free(&step);
    return 0;
}
