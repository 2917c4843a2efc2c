/*
 * task.h - multiple-choice questions that both models answer.
 *
 * A model's answer is the choice that it finds likeliest behind the prompt.
 * Each choice is a window of its own: the prompt, and the choice scored.
 */
#ifndef LMQ_VALIDATE_TASK_H
#define LMQ_VALIDATE_TASK_H

#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/corpus.h"

#define LMQ_TASK_MOST_CHOICES 64

struct lmq_question {
    size_t line;         /* of the file, from 1 */
    size_t first_window; /* of its choices, one after the other */
    size_t n_choices;
    size_t answer;
};

struct lmq_task {
    struct lmq_question *questions;
    size_t n, capacity;
    struct lmq_corpus corpus;
    size_t *bytes; /* per window: of the choice, without spaces before it */
    size_t bytes_capacity;
};

/*
 * Reads lines {"prompt": TEXT, "choices": [TEXT, ...], "answer": INDEX}; empty
 * ones are left out, further keys too. A prompt and a choice longer than
 * `context` tokens are refused, as is all that is no such line, with its
 * number.
 */
enum lmq_status lmq_task_read(const struct lmq_tokenizer *tokenizer,
                              const struct lmq_texts *texts, size_t context,
                              struct lmq_task *task, struct lmq_error *err);
void lmq_task_free(struct lmq_task *task);

#endif
