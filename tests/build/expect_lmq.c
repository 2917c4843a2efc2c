/*
 * expect_lmq.c - what a reader must find in a container: see the README of
 * tests/files/lmq.
 */
#include "config.h"

#include "tests/build/expect_lmq.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32.h"
#include "base/files/file.h"
#include "formats/checkpoint/checkpoint.h"
#include "lmquant.h"
#include "tests/build/build_checkpoint.h"

static void
fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

/* A line for each tensor: name, dimensions, CRC-32 of its elements as f32. */
static void
expect_tensor(FILE *file, struct lmq_checkpoint *checkpoint,
              const struct lmq_tensor *tensor)
{
    struct lmq_scratch scratch = {0};
    struct bytes bytes = {0};
    size_t n = (size_t)tensor->n_elements;
    float *x = malloc(n * sizeof(*x));
    struct lmq_error err;

    if (tensor->unknown != NULL) {
        fprintf(file, "%s unreadable\n", tensor->name);
        free(x);
        return;
    }
    if (x == NULL || lmq_checkpoint_read(checkpoint, tensor, 0, n, x, &scratch,
                                         &err) != LMQ_OK)
        fail(tensor->name, err.message);
    for (size_t i = 0; i < n; i++)
        put_f32(&bytes, x[i]);
    fprintf(file, "%s ", tensor->name);
    for (uint32_t i = 0; i < tensor->n_dims; i++)
        fprintf(file, "%s%d", i > 0 ? "x" : "", (int)tensor->dims[i]);
    fprintf(file, "%s %08x\n", tensor->n_dims == 0 ? "-" : "",
            lmq_crc32(0, bytes.at, bytes.n));
    bytes_free(&bytes);
    lmq_scratch_free(&scratch);
    free(x);
}

#define N_TOKENS 10

/* The tokens, and a line with the logits after each. */
static void
expect_logits(FILE *file, struct lmq_model *model)
{
    const struct lmq_session_options options = {.activations = "f32",
                                                .context = N_TOKENS,
                                                .batch = N_TOKENS,
                                                .all_logits = 1,
                                                .threads = 1};
    size_t vocabulary = lmq_model_vocabulary(model);
    struct lmq_session *session;
    int32_t tokens[N_TOKENS];
    struct lmq_error err;

    fputs("tokens", file);
    for (size_t i = 0; i < N_TOKENS; i++) {
        tokens[i] = (int32_t)((7 * i * i + 3 * i + 1) % vocabulary);
        fprintf(file, " %d", (int)tokens[i]);
    }
    fputc('\n', file);
    if (lmq_session_new(model, &options, &session, &err) != LMQ_OK ||
        lmq_session_eval(session, tokens, N_TOKENS, &err) != LMQ_OK)
        fail("logits", err.message);
    for (size_t i = N_TOKENS; i-- > 0;) {
        fputs("logits", file);
        for (size_t j = 0; j < vocabulary; j++)
            fprintf(file, " %.5g",
                    (double)lmq_session_logits(session, i)[j]);
        fputc('\n', file);
    }
    lmq_session_free(session);
}

void
expect_lmq(const char *path, const char *text)
{
    struct lmq_checkpoint *checkpoint = NULL;
    struct lmq_model *model;
    struct lmq_error err;
    FILE *file = fopen(text, "w");

    if (file == NULL ||
        lmq_checkpoint_open(path, NULL, &checkpoint, &err) != LMQ_OK)
        fail(path, file == NULL ? strerror(errno) : err.message);
    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        expect_tensor(file, checkpoint, &checkpoint->tensors[i]);
    if (checkpoint->has_model &&
        lmq_model_open(checkpoint, &model, &err) == LMQ_OK) {
        expect_logits(file, model);
        lmq_model_close(model);
    }
    lmq_checkpoint_close(checkpoint);
    if (fclose(file) != 0)
        fail(text, strerror(errno));
}
