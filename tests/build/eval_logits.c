/*
 * eval_logits.c - the logits after each of some tokens, as float32 to standard
 * output: for comparisons with other implementations by hand.
 *
 *     eval_logits [-b BATCH] [-a ACTIVATIONS] CHECKPOINT ID...
 *
 * All tokens at once, or BATCH at a time. With activations of float32, also
 * where weights are integers, or as ACTIVATIONS says.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lmquant.h"

#define MAX_TOKENS 4096

static int
fail(const struct lmq_error *err)
{
    fprintf(stderr, "eval_logits: %s: %s\n", err->path, err->message);
    return 1;
}

/* What was computed last: `n` tokens. */
static enum lmq_status
print_logits(const struct lmq_session *session, size_t n, size_t n_logits)
{
    for (size_t i = n; i > 0; i--)
        if (fwrite(lmq_session_logits(session, i - 1), sizeof(float),
                   n_logits, stdout) != n_logits)
            return LMQ_ERR_IO;
    return LMQ_OK;
}

static int
eval(const struct lmq_model *model, const char *activations, size_t batch,
     const int32_t *tokens, size_t n_tokens)
{
    const struct lmq_session_options options = {
        .size = sizeof(options),
        .context = n_tokens,
        .batch = batch,
        .activations = activations,
        .all_logits = 1,
    };
    struct lmq_session *session = NULL;
    struct lmq_error err = {0};
    size_t n_logits = lmq_model_vocabulary(model);
    enum lmq_status status = lmq_session_new(model, &options, &session, &err);

    for (size_t at = 0; at < n_tokens && status == LMQ_OK; at += batch) {
        size_t n = n_tokens - at < batch ? n_tokens - at : batch;
        status = lmq_session_eval(session, tokens + at, n, &err);
        if (status == LMQ_OK)
            status = print_logits(session, n, n_logits);
    }
    lmq_session_free(session);
    return status == LMQ_OK ? 0 : fail(&err);
}

int
main(int argc, char **argv)
{
    struct lmq_checkpoint *checkpoint = NULL;
    struct lmq_model *model = NULL;
    struct lmq_error err = {0};
    const char *activations = "f32";
    int32_t tokens[MAX_TOKENS];
    size_t n = 0, batch = MAX_TOKENS;

    for (int c; (c = getopt(argc, argv, "a:b:")) != -1;)
        if (c == 'a')
            activations = strcmp(optarg, "auto") == 0 ? NULL : optarg;
        else
            batch = (size_t)strtoul(optarg, NULL, 10);
    if (argc - optind < 2 || argc - optind - 1 > MAX_TOKENS || batch == 0) {
        fprintf(stderr, "usage: %s [-b BATCH] [-a ACTIVATIONS] CHECKPOINT "
                        "ID...\n",
                argv[0]);
        return 2;
    }
    for (int i = optind + 1; i < argc; i++)
        tokens[n++] = (int32_t)strtol(argv[i], NULL, 10);
    enum lmq_status status =
        lmq_checkpoint_open(argv[optind], NULL, &checkpoint, &err);
    if (status == LMQ_OK)
        status = lmq_model_open(checkpoint, &model, &err);
    int code = status == LMQ_OK
                   ? eval(model, activations, batch, tokens, n)
                   : fail(&err);
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
    return code;
}
