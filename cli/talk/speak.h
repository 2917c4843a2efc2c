/*
 * speak.h - a model that speaks: what `run` and its conversations share.
 */
#ifndef LMQ_CLI_SPEAK_H
#define LMQ_CLI_SPEAK_H

#include "cli/command.h"
#include "cli/talk/stops.h"

struct run {
    const struct arguments *arguments;
    struct lmq_checkpoint *checkpoint;
    struct lmq_tokenizer *tokenizer;
    struct lmq_detokenizer *detokenizer;
    struct lmq_model *model;
    struct lmq_session *session;
    struct lmq_sampler *sampler;
    struct lmq_chat *chat; /* of a conversation, else NULL */
    char *read;       /* the prompt from a file or standard input, or NULL */
    const char *text; /* the prompt */
    size_t n_text;
    int32_t *prompt;
    size_t n_prompt;
    int32_t *made; /* what was generated */
    size_t n_made, n_most;
    struct stops stops;
    bool is_ended; /* by the model itself */
    bool is_full;  /* the context is, and must not slide */
    bool is_interrupted;
    double prompt_seconds, seconds;
    struct progress_state state;
    struct lmq_progress progress;
};

/* Evaluates tokens in steps, between which somebody may want an end; *n_read of
 * them. */
enum lmq_status read_tokens(struct run *run, const int32_t *ids, size_t n,
                            size_t *n_read, struct lmq_error *err);

/* Generates behind what was evaluated, n_most tokens at most, until the text
 * ends in one way or another. */
enum lmq_status generate(struct run *run, struct lmq_error *err);

/* Talks until the input ends; returns the exit code (converse.c). */
int converse(struct run *run);

#endif
