/*
 * validate_fable.c - validates the model of tests/data/fable.
 */
#include "config.h"

#include "tests/validate/validate_fable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/build/suite.h"

const char *
fable(const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "data/fable/%s", name);
    return source_path(path);
}

/* ---- Running it ---- */

struct lmq_checkpoint *
open_with_tokenizer(const char *path)
{
    const struct lmq_open_options open = {.tokenizer =
                                              fable("tokenizer.json")};
    struct lmq_checkpoint *checkpoint;
    struct lmq_error err;

    ck_assert_msg(lmq_checkpoint_open(path, &open, &checkpoint, &err) ==
                      LMQ_OK,
                  "%s: %s", path, err.message);
    return checkpoint;
}

enum lmq_status
try_validate(const char *reference, const char *judged,
             const struct lmq_validate_options *options,
             const struct lmq_progress *progress, struct lmq_report **report,
             int *is_partial, struct lmq_error *err)
{
    struct lmq_checkpoint *a = open_with_tokenizer(reference);
    struct lmq_checkpoint *b = open_with_tokenizer(judged);
    enum lmq_status status =
        lmq_validate(a, b, options, progress, report, is_partial, err);

    lmq_checkpoint_close(b);
    lmq_checkpoint_close(a);
    return status;
}

struct lmq_report *
validate(const char *reference, const char *judged,
         const struct lmq_validate_options *options)
{
    struct lmq_report *report;
    struct lmq_error err;
    int is_partial;

    ck_assert_msg(try_validate(reference, judged, options, NULL, &report,
                               &is_partial, &err) == LMQ_OK,
                  "%s: %s", err.path, err.message);
    ck_assert_int_eq(is_partial, 0);
    return report;
}

const char *
quantize(const char *from, const char *name)
{
    struct lmq_checkpoint *checkpoint = open_with_tokenizer(from);
    const char *path = in_folder(name);
    struct lmq_error err;

    ck_assert_msg(lmq_convert(checkpoint, path, NULL, NULL, NULL, &err) ==
                      LMQ_OK,
                  "%s", err.message);
    lmq_checkpoint_close(checkpoint);
    return path;
}

struct lmq_validate_options
usual_options(const char *const *texts)
{
    static const struct lmq_session_options session = {.context = CONTEXT};

    return (struct lmq_validate_options){.texts = texts,
                                         .n_texts = 1,
                                         .session = &session,
                                         .max_tokens = 1500};
}

char *
first_lines(const char *name, size_t n)
{
    size_t size;
    char *text = (char *)read_file(fable(name), &size);

    if (n < size)
        text[n] = '\0';
    return text;
}

const char *
short_text(const char *name, size_t n)
{
    char *text = first_lines("held-out-a.txt", n);
    const char *path = in_folder(name);

    write_file(path, text, strlen(text));
    free(text);
    return path;
}
