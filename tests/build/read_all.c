/*
 * read_all.c - every question that the reader interface answers, asked once.
 */
#include "config.h"

#include "tests/build/read_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/checkpoint/checkpoint.h"
#include "lmquant.h"

/* Tensors of a small file that are larger are aliases and holes. */
#define ELEMENTS_MAX ((size_t)1 << 14)

static void
fail(const char *what)
{
    fprintf(stderr, "read_all: %s\n", what);
    abort();
}

static void
read_tensor(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
            struct lmq_scratch *scratch, float *x)
{
    struct lmq_error err;
    size_t n = tensor->n_elements < ELEMENTS_MAX ? (size_t)tensor->n_elements
                                                 : ELEMENTS_MAX;

    if (lmq_checkpoint_read(checkpoint, tensor, 0, n, x, scratch, &err) !=
            LMQ_OK &&
        err.message[0] == '\0')
        fail("an error without a message");
    if (tensor->n_elements > n) /* the end */
        lmq_checkpoint_read(checkpoint, tensor, tensor->n_elements - n, n, x,
                            scratch, &err);
    if (lmq_checkpoint_find_name(checkpoint, tensor->name) == NULL)
        fail("a tensor that is not found by its name");
}

/* Its first rows and its last ones, as integers. */
static void
read_integers(struct lmq_checkpoint *checkpoint,
              const struct lmq_tensor *tensor, struct lmq_scratch *scratch)
{
    static int8_t q[ELEMENTS_MAX];
    static unsigned char scales[ELEMENTS_MAX * sizeof(float)];
    struct lmq_error err;

    if (tensor->quant.group_size == 0 || tensor->n_elements == 0 ||
        tensor->n_cols > ELEMENTS_MAX)
        return;
    size_t n = ELEMENTS_MAX / (size_t)tensor->n_cols;
    if (n > tensor->n_rows)
        n = (size_t)tensor->n_rows;
    lmq_checkpoint_read_integers(checkpoint, tensor, 0, n, q, scales, scratch,
                                 &err);
    lmq_checkpoint_read_integers(checkpoint, tensor, tensor->n_rows - n, n, q,
                                 scales, scratch, &err);
}

static void
look_at(struct lmq_checkpoint *checkpoint)
{
    struct lmq_inspect_options options = {.has_tensors = 1};
    struct lmq_report *report;
    struct lmq_error err;
    char *text;

    if (lmq_inspect(checkpoint, &options, &report, &err) != LMQ_OK)
        return;
    if (lmq_report_text(report, LMQ_REPORT_JSON, &text, &err) != LMQ_OK)
        fail("a report that is no JSON");
    for (const char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' && *p != '\n')
            fail("a control character in a report");
    lmq_text_free(text);
    lmq_report_free(report);
}

static bool
read_and(const char *path, const char *config, bool inspects)
{
    const struct lmq_open_options options = {.size = sizeof(options),
                                             .config = config};
    struct lmq_checkpoint *checkpoint;
    struct lmq_scratch scratch = {0};
    struct lmq_error err = {0};
    static float x[ELEMENTS_MAX]; /* pages for each of many calls cost */
    enum lmq_status status =
        lmq_checkpoint_open(path, &options, &checkpoint, &err);

    if (status != LMQ_OK) {
        if (checkpoint != NULL || err.message[0] == '\0')
            fail("a failure that does not say why");
        return false;
    }
    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        read_tensor(checkpoint, &checkpoint->tensors[i], &scratch, x);
        read_integers(checkpoint, &checkpoint->tensors[i], &scratch);
    }
    if (inspects)
        look_at(checkpoint);
    lmq_scratch_free(&scratch);
    lmq_checkpoint_close(checkpoint);
    return true;
}

bool
read_all(const char *path)
{
    return read_and(path, NULL, false);
}

bool
inspect_all(const char *path)
{
    return read_and(path, NULL, true);
}

bool
inspect_with(const char *path, const char *config)
{
    return read_and(path, config, true);
}
