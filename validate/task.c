/*
 * task.c - reads multiple-choice questions into windows.
 */
#include "config.h"

#include "validate/task.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/report.h"

#define MOST_QUESTIONS ((size_t)1000000)

/* The line that is read. */
struct line {
    struct lmq_task *task;
    const struct lmq_tokenizer *tokenizer;
    int32_t bos; /* -1: none */
    size_t context;
    size_t number;
    struct lmq_error *err;
};

static enum lmq_status
fail_line(const struct line *line, const char *expected, const char *found)
{
    lmq_fail(line->err, LMQ_ERR_FORMAT, 0, "line %zu: expected %s, found %s",
             line->number, expected, found);
    lmq_hint(line->err, "a line is as {\"prompt\": \"2 + 2 =\", \"choices\": "
                        "[\" 3\", \" 4\"], \"answer\": 1}");
    return LMQ_ERR_FORMAT;
}

/* What a value is, for messages. */
static const char *
kind_of(const json_t *value)
{
    static const char *const kinds[] = {
        "an object", "an array", "a string", "an integer", "a real number",
        "true", "false", "null"};

    return value == NULL ? "nothing" : kinds[json_typeof(value)];
}

/* ---- A choice ---- */

static bool
is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Prompt and choice are tokenized together, as they are read. The tokens that
 * the prompt has alone, without spaces at its end, are not scored. */
static enum lmq_status
split(const struct line *line, const char *prompt, size_t n_prompt,
      const char *choice, size_t n_choice, struct lmq_ids *ids,
      size_t *n_unscored)
{
    char *whole = malloc(n_prompt + n_choice + 1);
    enum lmq_status status = LMQ_OK;

    if (whole == NULL)
        return lmq_fail_nomem(line->err);
    memcpy(whole, prompt, n_prompt);
    memcpy(whole + n_prompt, choice, n_choice);
    size_t n = n_prompt;
    while (n > 0 && is_space(whole[n - 1]))
        n--;
    status = lmq_tokenizer_encode(line->tokenizer, whole, n, 0, ids,
                                  line->err);
    *n_unscored = ids->n;
    ids->n = 0;
    if (status == LMQ_OK)
        status = lmq_tokenizer_encode(line->tokenizer, whole,
                                      n_prompt + n_choice, 0, ids, line->err);
    free(whole);
    return status;
}

static enum lmq_status
add_choice(const struct line *line, const char *prompt, size_t n_prompt,
           const json_t *choice, size_t index)
{
    struct lmq_task *task = line->task;
    const char *text = json_string_value(choice);
    size_t n = json_string_length(choice), n_unscored = 0, spaces = 0;
    size_t lead = line->bos >= 0 ? 1 : 0;
    struct lmq_ids ids = {0};
    enum lmq_status status =
        split(line, prompt, n_prompt, text, n, &ids, &n_unscored);

    if (status == LMQ_OK && ids.n <= n_unscored)
        status = lmq_fail(line->err, LMQ_ERR_FORMAT, 0,
                          "line %zu: choice %zu adds no token to the prompt",
                          line->number, index);
    if (status == LMQ_OK && n_unscored + lead == 0)
        status = lmq_fail(line->err, LMQ_ERR_FORMAT, 0,
                          "line %zu: the prompt is empty, and this model has "
                          "no begin token: nothing predicts choice %zu",
                          line->number, index);
    if (status == LMQ_OK && ids.n + lead > line->context) {
        status = lmq_fail(line->err, LMQ_ERR_FORMAT, 0,
                          "line %zu: prompt and choice %zu have %zu tokens, "
                          "the window has room for %zu",
                          line->number, index, ids.n + lead, line->context);
        lmq_hint(line->err, "a larger .context");
    }
    while (spaces < n && is_space(text[spaces]))
        spaces++;
    if (status == LMQ_OK &&
        lmq_mem_grow(&task->bytes, &task->bytes_capacity,
                     task->corpus.n_windows + 1, sizeof(*task->bytes)) != 0)
        status = lmq_fail_nomem(line->err);
    if (status == LMQ_OK) {
        task->bytes[task->corpus.n_windows] = n > spaces ? n - spaces : 1;
        status = lmq_corpus_add_window(&task->corpus, line->bos, ids.ids,
                                       ids.n, n_unscored, line->err);
    }
    lmq_ids_clear(&ids);
    return status;
}

/* ---- A line ---- */

static enum lmq_status
check_question(const struct line *line, const json_t *json)
{
    const json_t *prompt = json_object_get(json, "prompt");
    const json_t *choices = json_object_get(json, "choices");
    const json_t *answer = json_object_get(json, "answer");
    size_t n = json_array_size(choices);
    char found[64];

    if (!json_is_object(json))
        return fail_line(line, "an object", kind_of(json));
    if (!json_is_string(prompt))
        return fail_line(line, "'prompt', a string", kind_of(prompt));
    if (!json_is_array(choices))
        return fail_line(line, "'choices', an array of strings",
                         kind_of(choices));
    for (size_t i = 0; i < n; i++)
        if (!json_is_string(json_array_get(choices, i)) ||
            json_string_length(json_array_get(choices, i)) == 0)
            return fail_line(line, "'choices', an array of strings that are "
                                   "not empty",
                             json_is_string(json_array_get(choices, i))
                                 ? "an empty one"
                                 : kind_of(json_array_get(choices, i)));
    snprintf(found, sizeof(found), "%zu", n);
    if (n < 2 || n > LMQ_TASK_MOST_CHOICES)
        return fail_line(line, "2 to 64 choices", found);
    if (!json_is_integer(answer))
        return fail_line(line, "'answer', the index of a choice",
                         kind_of(answer));
    json_int_t index = json_integer_value(answer);
    snprintf(found, sizeof(found), "%lld", (long long)index);
    if (index < 0 || index >= (json_int_t)n)
        return fail_line(line, "'answer', an index from 0, below the number "
                               "of choices",
                         found);
    return LMQ_OK;
}

static enum lmq_status
add_question(const struct line *line, const json_t *json)
{
    struct lmq_task *task = line->task;
    const json_t *prompt = json_object_get(json, "prompt");
    const json_t *choices = json_object_get(json, "choices");
    enum lmq_status status = check_question(line, json);

    if (status != LMQ_OK)
        return status;
    if (task->n == MOST_QUESTIONS)
        return lmq_fail(line->err, LMQ_ERR_FORMAT, 0,
                        "has more than %zu questions", MOST_QUESTIONS);
    if (lmq_mem_grow(&task->questions, &task->capacity, task->n + 1,
                     sizeof(*task->questions)) != 0)
        return lmq_fail_nomem(line->err);
    task->questions[task->n++] = (struct lmq_question){
        .line = line->number,
        .first_window = task->corpus.n_windows,
        .n_choices = json_array_size(choices),
        .answer = (size_t)json_integer_value(json_object_get(json, "answer")),
    };
    for (size_t i = 0; i < json_array_size(choices) && status == LMQ_OK; i++)
        status = add_choice(line, json_string_value(prompt),
                            json_string_length(prompt),
                            json_array_get(choices, i), i);
    task->corpus.n_documents++;
    return status;
}

static enum lmq_status
read_line(const struct line *line, const char *text, size_t n)
{
    json_error_t problem;
    json_t *json = NULL;
    enum lmq_status status = lmq_json_read(
        text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &json, &problem,
        line->err);

    if (status == LMQ_ERR_FORMAT)
        status = fail_line(line, "JSON", problem.text);
    if (status == LMQ_OK)
        status = add_question(line, json);
    json_decref(json);
    return status;
}

/* ---- The file ---- */

static enum lmq_status
read_lines(struct line *line, const struct lmq_text *text)
{
    const char *at = (const char *)text->bytes, *end = at + text->n;
    enum lmq_status status = LMQ_OK;

    for (line->number = 1; at < end && status == LMQ_OK; line->number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL)
            stop = end;
        while (at < stop && is_space(*at))
            at++;
        if (at < stop)
            status = read_line(line, at, (size_t)(stop - at));
        at = stop + (stop < end);
    }
    return status;
}

enum lmq_status
lmq_task_read(const struct lmq_tokenizer *tokenizer,
              const struct lmq_texts *texts, size_t context,
              struct lmq_task *task, struct lmq_error *err)
{
    unsigned flags = lmq_tokenizer_default_flags(tokenizer);
    struct line line = {
        .task = task,
        .tokenizer = tokenizer,
        .bos = flags & LMQ_ENCODE_BOS ? lmq_tokenizer_bos(tokenizer) : -1,
        .context = context,
        .err = err,
    };
    const struct lmq_text *text = &texts->texts[0];

    *task = (struct lmq_task){.corpus.has_bos = line.bos >= 0};
    task->corpus.n_bytes = text->n;
    task->corpus.crc = lmq_crc32(0, text->bytes, text->n);
    enum lmq_status status = read_lines(&line, text);
    if (status == LMQ_OK && task->n == 0)
        status = lmq_fail(err, LMQ_ERR_FORMAT, 0, "has no question");
    if (status != LMQ_OK) {
        lmq_error_in(err, text->path);
        lmq_task_free(task);
    }
    return status;
}

void
lmq_task_free(struct lmq_task *task)
{
    lmq_corpus_free(&task->corpus);
    free(task->questions);
    free(task->bytes);
    *task = (struct lmq_task){0};
}
