/*
 * eval_logits.c - the logits after each of some tokens, as float32 to standard
 * output: for comparisons with other implementations by hand.
 *
 *     eval_logits CHECKPOINT ID...
 *
 * With activations of float32, also where weights are integers.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "lmquant.h"

#define MAX_TOKENS 4096

static int
fail(const struct lmq_error *err)
{
    fprintf(stderr, "eval_logits: %s: %s\n", err->path, err->message);
    return 1;
}

static int
print_logits(const struct lmq_model *model, const int32_t *tokens, size_t n)
{
    const struct lmq_session_options options = {
        .size = sizeof(options),
        .batch = n,
        .activations = "f32",
        .all_logits = 1,
    };
    struct lmq_session *session = NULL;
    struct lmq_error err = {0};
    size_t n_logits = lmq_model_vocabulary(model);
    enum lmq_status status = lmq_session_new(model, &options, &session, &err);

    if (status == LMQ_OK)
        status = lmq_session_eval(session, tokens, n, &err);
    for (size_t i = n; i > 0 && status == LMQ_OK; i--)
        if (fwrite(lmq_session_logits(session, i - 1), sizeof(float),
                   n_logits, stdout) != n_logits)
            status = LMQ_ERR_IO;
    lmq_session_free(session);
    return status == LMQ_OK ? 0 : fail(&err);
}

int
main(int argc, char **argv)
{
    struct lmq_checkpoint *checkpoint = NULL;
    struct lmq_model *model = NULL;
    struct lmq_error err = {0};
    int32_t tokens[MAX_TOKENS];
    size_t n = 0;

    if (argc < 3 || argc - 2 > MAX_TOKENS) {
        fprintf(stderr, "usage: %s CHECKPOINT ID...\n", argv[0]);
        return 2;
    }
    for (int i = 2; i < argc; i++)
        tokens[n++] = (int32_t)strtol(argv[i], NULL, 10);
    enum lmq_status status =
        lmq_checkpoint_open(argv[1], NULL, &checkpoint, &err);
    if (status == LMQ_OK)
        status = lmq_model_open(checkpoint, &model, &err);
    int code =
        status == LMQ_OK ? print_logits(model, tokens, n) : fail(&err);
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
    return code;
}
