/*
 * export_gguf_pre.c - the name that GGUF has for how a tokenizer cuts text.
 *
 * It is found by trying: who cuts a text full of traps in the same way, and
 * each kind of character between all others.
 */
#include "config.h"

#include "convert/export/export_gguf_pre.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/buffer.h"
#include "runtime/tokenizer/model/tok_pipeline.h"
#include "runtime/tokenizer/tokenizer.h"

const char lmq_gguf_traps[] =
    "Once upon a time, there was a girl.  She'd 3 cats!\n\n"
    "\tif (x1 == 1234567) { return a+b*c; }   // don't DON'T I'LL we've\r\n"
    "  $12.50 100% \u20ac5 _a_b_ __ ... ?! --- #hash @me "
    "a\u00a0b \u00e9l\u00e8ve na\u00efve \u00d1and\u00fa \u00df\n   \n \n"
    "\u0417\u0434\u0440\u0430\u0432\u0441\u0442\u0432\u0443\u0439 "
    "\u4f60\u597d\uff0c\u4e16\u754c 2024\u5e74 "
    "\u3053\u3093\u306b\u3061\u306f \ud55c\uad6d\uc5b4 "
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 "
    "\u0939\u093f\u0928\u094d\u0926\u0940 \U0001f642\U0001f44d\U0001f3fd "
    "\u2160 \u00bd \u00b2 camelCaseHTTPServer 3rd 1,000.5\n\n(c) a'Sb "
    "'SHello \u00e9's DON'T\u00e9 o'same x\n\ny/   the  a    in\n  7 end  ";

/* What patterns ask for, one of each kind; nothing that NFC would change. */
static const char *const kinds[] = {
    "a", "B", "\u01c5", "\u02bc", "\u017f", "\u4e2d", "\u30ab", "\ud55c",
    "\u0e17", "\u0363", "1", "12345", "\u0663", "\u00bd", " ", "     ",
    "\u00a0", "\t", "\r", "\n", "\u200d", "!", "/", "_", "\u3002", "\uff0c",
    "\u201c", "+", "\u20ac", "\U0001f642", "'", "'s", "'re", "'LL", "'d",
};

/* Each kind behind each two others, for what traps are too few. */
static void
add_neighbours(struct lmq_buffer *text)
{
    const size_t n = sizeof(kinds) / sizeof(kinds[0]);

    for (size_t i = 0; i < n * n * n; i++) {
        const size_t at[] = {i / (n * n), i / n % n, i % n};
        for (size_t k = 0; k < 3; k++)
            lmq_buffer_append(text, kinds[at[k]], strlen(kinds[at[k]]));
    }
}

/* Whether no vocabulary could tell one from the other: where it has no piece
 * across a cut, ids are the same with it and without. */
static bool
cuts_alike(const struct lmq_tokenizer *a, const struct lmq_tokenizer *b,
           const char *text, size_t n, enum lmq_status *status)
{
    struct lmq_parts x = {0}, y = {0};
    size_t i = 0;

    *status = lmq_tokenizer_cut(a, text, n, &x, NULL);
    if (*status == LMQ_OK)
        *status = lmq_tokenizer_cut(b, text, n, &y, NULL);
    if (*status == LMQ_OK)
        while (i < x.n && i < y.n && x.parts[i].n == y.parts[i].n)
            i++;
    bool is_same = *status == LMQ_OK && i == x.n && i == y.n &&
                   x.text.n == y.text.n &&
                   memcmp(x.text.bytes, y.text.bytes, x.text.n) == 0;
    lmq_parts_free(&x);
    lmq_parts_free(&y);
    return is_same;
}

/* Compares with a tokenizer that can do nothing but cut. What one of them
 * refuses is no reason to fail, lack of memory is. */
static enum lmq_status
try_pretype(const struct lmq_tokenizer *t, const struct lmq_pretype *pretype,
            const struct lmq_buffer *neighbours, bool *is_good, bool *is_near)
{
    struct lmq_tokenizer *cutter = calloc(1, sizeof(*cutter));
    enum lmq_status status = cutter == NULL
                                 ? LMQ_ERR_NOMEM
                                 : lmq_pretype_split(cutter, pretype, NULL);

    *is_good = status == LMQ_OK &&
               pretype->prefers_whole == t->model.prefers_whole &&
               cuts_alike(t, cutter, lmq_gguf_traps, strlen(lmq_gguf_traps),
                          &status);
    *is_near = *is_good && !cuts_alike(t, cutter,
                                       (const char *)neighbours->bytes,
                                       neighbours->n, &status);
    lmq_tokenizer_close(cutter);
    return status == LMQ_ERR_NOMEM ? status : LMQ_OK;
}

enum lmq_status
lmq_gguf_find_pre(const struct lmq_tokenizer *t, const char **name,
                  bool *is_near, struct lmq_error *err)
{
    const struct lmq_pretype *p = lmq_pretype_next(NULL);
    struct lmq_buffer neighbours = {0};

    add_neighbours(&neighbours);
    enum lmq_status status =
        neighbours.has_failed ? LMQ_ERR_NOMEM : LMQ_OK;
    *name = NULL;
    *is_near = true;
    for (; p != NULL && status == LMQ_OK && *is_near;
         p = lmq_pretype_next(p)) {
        bool is_good, differs;
        status = try_pretype(t, p, &neighbours, &is_good, &differs);
        if (status == LMQ_OK && is_good && (*name == NULL || !differs)) {
            *name = p->name;
            *is_near = differs;
        }
    }
    lmq_buffer_free(&neighbours);
    return status == LMQ_OK ? LMQ_OK : lmq_fail_nomem(err);
}
