/*
 * open.c - from a path to a checkpoint in the one form.
 *
 * The format is recognised by content and opens the files; options take
 * effect; then normalise.c makes of whatever was found the one form that all
 * others work with.
 */
#include "config.h"

#include "formats/open.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/path.h"
#include "base/options.h"
#include "formats/checkpoint/checkpoint.h"
#include "formats/folder.h"
#include "formats/hf/hf_folder.h"
#include "formats/probe.h"

/* ---- Which format ---- */

/* *format is NULL if there is none; *path, which is owned, becomes that of a
 * file where only this makes a folder a checkpoint. */
static enum lmq_status
find_format(char **path, struct lmq_probe *probe,
            const struct lmq_format **format, struct lmq_error *err)
{
    char *file = NULL;
    enum lmq_status status = lmq_probe_look(*path, probe, err);

    *format = NULL;
    if (status == LMQ_OK)
        status = lmq_probe_recognise(probe, format, err);
    if (status != LMQ_OK || *format != NULL || !probe->is_folder)
        return status;
    status = lmq_folder_find_checkpoint(*path, &file, err);
    if (file == NULL)
        return status;
    free(*path);
    *path = file;
    status = lmq_probe_look(*path, probe, err);
    return status == LMQ_OK ? lmq_probe_recognise(probe, format, err) : status;
}

/* Opens nothing but the beginning: for messages about files that are something
 * else than was asked for. */
enum lmq_status
lmq_checkpoint_recognises(const char *path, bool *is_known,
                          struct lmq_error *err)
{
    const struct lmq_format *format = NULL;
    struct lmq_probe probe;
    char *copy = strdup(path);
    enum lmq_status status =
        copy == NULL ? lmq_fail_nomem(err)
                     : find_format(&copy, &probe, &format, err);

    if (status != LMQ_OK)
        lmq_error_in(err, path);
    free(copy);
    *is_known = format != NULL;
    return status;
}

/* ---- Opening ---- */

/* An empty one would be reported of another file. */
static enum lmq_status
check_names(const struct lmq_open_options *options, struct lmq_error *err)
{
    if (options->tokenizer != NULL && *options->tokenizer == '\0')
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".tokenizer is '', expected a file");
    if (options->config != NULL && *options->config == '\0')
        return lmq_fail(err, LMQ_ERR_ARG, 0, ".config is '', expected a file");
    return LMQ_OK;
}

/* A model is not run by a number that is not the same for all who read its
 * files. */
static void
refuse_unsaid(struct lmq_checkpoint *checkpoint, const char *key)
{
    if (key != NULL)
        lmq_hparams_refuse(&checkpoint->hparams,
                           "a model of this kind without '%s', which versions "
                           "of the library take differently",
                           key);
}

/* A head that is not the embedding which it is said to be: versions of the
 * library take one or the other. */
static enum lmq_status
refuse_two_heads(struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    const struct lmq_tensor *embedding = lmq_checkpoint_find(
        checkpoint, LMQ_ROLE_EMBEDDING, LMQ_PART_WEIGHT, -1);
    const struct lmq_tensor *head =
        lmq_checkpoint_find(checkpoint, LMQ_ROLE_HEAD, LMQ_PART_WEIGHT, -1);
    bool is_equal;

    if (checkpoint->hparams.tie != LMQ_TIE_YES || embedding == NULL ||
        head == NULL || lmq_checkpoint_is_tied(checkpoint))
        return LMQ_OK;
    enum lmq_status status = lmq_checkpoint_are_equal(
        checkpoint, embedding, head, &is_equal, err);
    if (status == LMQ_OK && !is_equal)
        lmq_hparams_refuse(&checkpoint->hparams,
                           "a head that differs from the embedding beside "
                           "'tie_word_embeddings', which versions of the "
                           "library take differently");
    return status;
}

/* Of a checkpoint as whole as it has to be for all else. */
static enum lmq_status
lend_tokenizer(struct lmq_checkpoint *checkpoint, const char *path,
               struct lmq_error *err)
{
    struct lmq_checkpoint *lender;
    enum lmq_status status = lmq_checkpoint_open(path, NULL, &lender, err);

    if (status != LMQ_OK)
        return status;
    lmq_checkpoint_move_tokenizer(checkpoint, lender);
    status =
        lmq_originals_add_all(&checkpoint->originals, &lender->originals, err);
    lmq_checkpoint_close(lender);
    return status;
}

/* By a file of one, a folder that has its files, or another checkpoint. Even
 * if it turns out to be none: what the user names is the tokenizer, nothing
 * else. */
static enum lmq_status
replace_tokenizer(struct lmq_checkpoint *checkpoint, const char *path,
                  struct lmq_error *err)
{
    const struct lmq_format *format = NULL;
    struct lmq_probe probe;
    char *copy = strdup(path);
    enum lmq_status status =
        copy == NULL ? lmq_fail_nomem(err)
                     : find_format(&copy, &probe, &format, err);

    free(copy);
    if (status == LMQ_OK)
        status = lmq_checkpoint_drop_tokenizer(checkpoint, path, err);
    if (status == LMQ_OK && format != NULL)
        status = lend_tokenizer(checkpoint, path, err);
    else if (status == LMQ_OK && probe.is_folder)
        status = lmq_hf_add_tokenizer(checkpoint, path, err);
    else if (status == LMQ_OK)
        status = lmq_checkpoint_add_blob_path(checkpoint, path,
                                              lmq_path_base(path), err);
    if (status == LMQ_OK && checkpoint->n_blobs == 0)
        status = lmq_fail(err, LMQ_ERR_FORMAT, 0, "has no tokenizer");
    if (status != LMQ_OK)
        lmq_error_in(err, path);
    return status;
}

/* What the user says overrules what the files say. */
static enum lmq_status
apply_options(struct lmq_checkpoint *checkpoint,
              const struct lmq_open_options *options, struct lmq_error *err)
{
    /* Not by less and more: neither may be NaN. */
    if (!(options->rope_theta >= 0 && options->rope_theta <= 1e15) ||
        (options->rope_theta > 0 && options->rope_theta < 1))
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".rope_theta is %g, expected 1 to 1e15",
                        options->rope_theta);
    if (!(options->norm_eps >= 0 && options->norm_eps <= 1))
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".norm_eps is %g, expected more than 0, at most 1",
                        options->norm_eps);
    if (options->rope_theta > 0)
        checkpoint->hparams.rope_theta = options->rope_theta;
    else
        refuse_unsaid(checkpoint, checkpoint->source.unsaid_theta);
    if (options->norm_eps > 0)
        checkpoint->hparams.norm_eps = options->norm_eps;
    else
        refuse_unsaid(checkpoint, checkpoint->source.unsaid_eps);
    if (options->config != NULL && !checkpoint->format->takes_config)
        lmq_checkpoint_note(checkpoint,
                            "%s describes its model itself: the config.json "
                            "that is given is not used",
                            checkpoint->format->name);
    return options->tokenizer == NULL
               ? LMQ_OK
               : replace_tokenizer(checkpoint, options->tokenizer, err);
}

enum lmq_status
lmq_checkpoint_open(const char *path, const struct lmq_open_options *given,
                    struct lmq_checkpoint **out, struct lmq_error *err)
{
    struct lmq_open_options own;
    const struct lmq_open_options *options = &own;
    struct lmq_probe probe;
    double started = lmq_clock_seconds();

    *out = NULL;
    enum lmq_status status =
        LMQ_OPTIONS_TAKE(struct lmq_open_options, &own, given, err);
    if (status == LMQ_OK)
        status = check_names(options, err);
    if (status != LMQ_OK)
        return status;
    struct lmq_checkpoint *checkpoint = calloc(1, sizeof(*checkpoint));
    if (checkpoint == NULL)
        return lmq_fail_nomem(err);
    lmq_hparams_init(&checkpoint->hparams);
    if ((checkpoint->path = strdup(path)) == NULL)
        status = lmq_fail_nomem(err);
    if (status == LMQ_OK)
        status =
            find_format(&checkpoint->path, &probe, &checkpoint->format, err);
    if (status == LMQ_OK) {
        checkpoint->is_folder = probe.is_folder;
        status = checkpoint->format == NULL
                     ? lmq_probe_fail(&probe, err)
                     : checkpoint->format->open(checkpoint, options, err);
    }
    if (status == LMQ_OK && probe.is_folder)
        status = lmq_folder_add_originals(checkpoint->path,
                                          &checkpoint->originals, err);
    if (status == LMQ_OK)
        status = apply_options(checkpoint, options, err);
    for (size_t i = 0; i < checkpoint->n_files && options->is_copied; i++)
        lmq_input_copy(checkpoint->files[i]);
    if (status == LMQ_OK)
        status = lmq_checkpoint_normalise(checkpoint, err);
    if (status == LMQ_OK)
        status = refuse_two_heads(checkpoint, err);
    if (status != LMQ_OK) {
        lmq_error_in(err, path);
        lmq_checkpoint_close(checkpoint);
        return status;
    }
    checkpoint->open_seconds = lmq_clock_seconds() - started;
    *out = checkpoint;
    return LMQ_OK;
}
