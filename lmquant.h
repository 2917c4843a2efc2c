/*
 * lmquant.h - the public interface of liblmquant.
 *
 * Everything here is stable between releases of the same major version.
 * Types are opaque; a function that can fail returns a status and, when
 * `err` is not NULL, says there what and where. The library never prints
 * and never exits. Objects may be used by one thread at a time unless a
 * function says otherwise.
 */
#ifndef LMQUANT_H
#define LMQUANT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Every structure of options begins with its size, so that programs and
 * libraries of different releases understand each other: what a program does
 * not know is left at its default; what it sets and the library does not know
 * is LMQ_ERR_ARG. Members that are zero are defaults, as is NULL for all of
 * them. In C:
 *
 *   struct lmq_convert_options convert = {.size = sizeof(convert),
 *                                         .group_size = 32};
 *
 * and in C or C++:
 *
 *   struct lmq_convert_options convert =
 *       LMQ_OPTIONS(struct lmq_convert_options);
 *   convert.group_size = 32;
 *
 * Size 0 stands for the members of release 0.2.0, in any release.
 */
#ifdef __cplusplus
template <typename T> inline T lmq_options()
{
    T options = T();
    options.size = sizeof(T);
    return options;
}
#define LMQ_OPTIONS(type) lmq_options<type>()
#else
#define LMQ_OPTIONS(type) {.size = sizeof(type)}
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LMQ_API __attribute__((visibility("default")))
#define LMQ_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define LMQ_API
#define LMQ_PRINTF(fmt, args)
#endif

/* ---- Errors ---- */

enum lmq_status {
    LMQ_OK = 0,
    LMQ_ERR_ARG,         /* the caller's mistake */
    LMQ_ERR_IO,          /* the system refused: files, permissions, space */
    LMQ_ERR_NOMEM,       /* out of memory */
    LMQ_ERR_FORMAT,      /* an input is malformed, truncated or corrupt */
    LMQ_ERR_UNSUPPORTED, /* an input is valid, but not understood here */
    LMQ_ERR_NONFINITE,   /* NaN or infinity where a number is needed */
    LMQ_ERR_CANCELLED    /* the progress callback asked to stop */
};

/* What went wrong. Plain text, one line each, control characters escaped.
 * Message, hint and the notes of reports name members of options as in C, with
 * a dot: ".scales". */
struct lmq_error {
    enum lmq_status status;
    uint64_t offset;    /* in the file, where that makes sense */
    char path[256];     /* the file concerned, or "" */
    char option[32];    /* the member of the options that the message names
                           first, "group_size", or "" */
    char message[512];
    char hint[256];     /* what to do about it, or "" */
};

/* ---- Library ---- */

/* "0.2.0": the version of the library in use. */
LMQ_API const char *lmq_version(void);

/* "avx512vnni": the instruction set that the kernels use. It is the best that
 * the machine has, or what the environment variable LMQUANT_CPU names. */
LMQ_API const char *lmq_instruction_set(void);

/* What lmq_sandbox() took away. */
enum {
    LMQ_SANDBOX_FILES = 1, /* to open any file but for reading what lies beside
                              the inputs */
    LMQ_SANDBOX_CALLS = 2  /* to write files, start programs, make sockets */
};

/* For programs that only read: gives up the rest for good, before hostile files
 * are opened and before threads are started. `paths` are the files and folders
 * that may still be read, each with the folder that it lies in. Returns bits of
 * LMQ_SANDBOX_*; 0 where the system cannot do it, which is no error. */
LMQ_API unsigned lmq_sandbox(const char *const *paths, size_t n);

struct lmq_report;

/* Called now and then from the calling thread; a value other than 0 stops
 * the work, which then returns LMQ_ERR_CANCELLED and leaves no traces but
 * what a conversion with `resumes` goes on with. */
struct lmq_progress {
    int (*report)(void *context, const char *stage, uint64_t done,
                  uint64_t total);
    void *context;
    /* NULL, or called once by what writes a model: its report is complete, the
     * output has no name yet, and gets none if this returns other than 0. */
    int (*approve)(void *context, const struct lmq_report *report);
};

/* ---- Reports ---- */

/*
 * What a command found: a tree of objects, arrays, numbers and strings with
 * the keys that the manual documents. Text for people, JSON, YAML and gates
 * are all made from this one tree.
 */
struct lmq_report;

enum lmq_report_format { LMQ_REPORT_JSON, LMQ_REPORT_YAML };

/* A function that makes one takes NULL for `report`: none is wanted. Else
 * *report is a report or, after a failure that has none, NULL. */
LMQ_API void lmq_report_free(struct lmq_report *report);

/* The whole tree as text. The caller frees *text with lmq_text_free(). */
LMQ_API enum lmq_status lmq_report_text(const struct lmq_report *report,
                                        enum lmq_report_format format,
                                        char **text, struct lmq_error *err);
LMQ_API void lmq_text_free(char *text);

/* The node at a dotted path ("totals.input_bytes", "tensors.3.name"), NULL if
 * there is none. It lives as long as the report. */
LMQ_API const struct lmq_report *
lmq_report_at(const struct lmq_report *report, const char *path);

/* Elements of an array or members of an object; 0 for anything else. */
LMQ_API size_t lmq_report_length(const struct lmq_report *node);
LMQ_API const struct lmq_report *
lmq_report_item(const struct lmq_report *array, size_t index);

enum lmq_kind {
    LMQ_KIND_NONE = 0, /* nothing is there */
    LMQ_KIND_NULL,     /* of a number: it was not finite */
    LMQ_KIND_BOOLEAN,
    LMQ_KIND_NUMBER,
    LMQ_KIND_STRING,
    LMQ_KIND_ARRAY,
    LMQ_KIND_OBJECT
};

/* What is at a path. */
LMQ_API enum lmq_kind lmq_report_kind(const struct lmq_report *node,
                                      const char *path);

/* The number (or boolean) at a path, NAN for anything else, which
 * lmq_report_kind() tells; the string, "" if there is none. */
LMQ_API double lmq_report_number(const struct lmq_report *node,
                                 const char *path);
LMQ_API const char *lmq_report_string(const struct lmq_report *node,
                                      const char *path);

/* ---- Checkpoints ---- */

/* A model in a file or folder of any known format. */
struct lmq_checkpoint;

/* What a file may not carry itself. All zero: nothing is given. */
struct lmq_open_options {
    size_t size;
    const char *tokenizer; /* one, or a folder or checkpoint that has one */
    const char *config;    /* a config.json */
    double rope_theta;
    double norm_eps;
    int is_copied; /* weights are read into memory instead of mapped */
};

/* Every operation takes an open checkpoint, which it leaves as it was. Paths
 * are taken by what opens one, by lmq_tokenizer_from_path(), since a tokenizer
 * may stand alone, and by lmq_verify() and lmq_verify_file(), which look at
 * what cannot be opened too. */
LMQ_API enum lmq_status
lmq_checkpoint_open(const char *path, const struct lmq_open_options *options,
                    struct lmq_checkpoint **checkpoint, struct lmq_error *err);
LMQ_API void lmq_checkpoint_close(struct lmq_checkpoint *checkpoint);

/*
 * A model is computed from its file where that lies, mapped into memory. If
 * somebody truncates the file meanwhile, the system sends SIGBUS.
 * This tells the path of the library's mapping that an address (si_addr) lies
 * in, NULL if there is none. It may be called by a signal handler. A program
 * that must survive opens with is_copied.
 */
LMQ_API const char *lmq_mapping_at(const void *address);

/* ---- Converting ---- */

/* Processes that do one thing together, each called with the same options but
 * for its own number. */
struct lmq_peers {
    unsigned rank, n; /* this one, from 0; of so many */
    /* The bytes of the process `from` come to all others. All of them call it,
     * in the same order; what it returns other than 0 ends the work. */
    int (*share)(void *context, unsigned from, void *bytes, size_t n_bytes);
    void *context;
};

/* All zero but for what is set: the defaults. Names are those of the command
 * line; NULL is the default. */
struct lmq_convert_options {
    size_t size;
    unsigned group_size;      /* 0: 64, or 32 where that takes fewer bytes; of
                                 what is quantized already its own */
    const char *scales;       /* "f16", "f32" */
    const char *method;       /* "absmax", "search", "gptq" */
    const char *tie;          /* "auto", "never" */
    const char *on_nonfinite; /* "fail", "zero" */
    const char *layout;       /* "rows", "tiles" */
    int is_dry_run;           /* report the plan, write nothing */
    int replaces;             /* replace an existing output */
    int is_compressed;        /* deflate the tokenizer */
    int threads;              /* 0: OMP_NUM_THREADS, or all cores */
    int forces_tokenizer;     /* keep one that does not fit */
    uint64_t shard_size;      /* bytes of a file at most; 0: one file */
    int has_digests;          /* SHA-256 of tensors, file, content */
    const char *recipe;       /* a file: what becomes of which matrix */
    const char *const *rules; /* behind those of the recipe: "ffn_down=bf16",
                                 "output=q8,group=32", "token_embd=keep" */
    size_t n_rules;
    int resumes;              /* go on with what was begun */
    const char *encoding;     /* "q4", "q5", "q6", "q8" */
    unsigned n_parts;         /* a set of so many files, about as large; 0: as
                                 shard_size says */
    unsigned part;            /* write only this file of them, from 1, as with
                                 `resumes`; 0: all */
    int seals;                /* write none: all parts are there */
    const char *const *calibration; /* texts: matrices of layers are rounded
                                 by what these make of them; "-" is standard
                                 input */
    size_t n_calibration;
    size_t calibration_tokens; /* of all of them; 0: 32768 */
    size_t context;            /* tokens of a window; 0: 512, or what the model
                                  has room for */
    int splits_documents;      /* each paragraph (blank lines between) begins
                                  anew */
    double damping;            /* of its mean, on the diagonal of what inputs
                                  say; 0: 0.01 */
    int rotates;               /* groups are turned, so that activations of
                                  8 bits lose less */
    const struct lmq_peers *peers; /* who share the work of a calibration; each
                                  writes a part: part is rank + 1, n_parts is
                                  n. NULL: nobody */
    double mend;               /* how much of what layers before have missed
                                  matrices make up for, at most 1; 0: 0.4;
                                  -1: nothing */
    int writes_text;           /* instead of reading one, calibrate by what the
                                  model writes itself */
};

/* Writes a checkpoint as a .lmq container, whole or not at all. None of
 * the checkpoint's files is ever replaced. With shard_size it is a set of
 * files, NAME-00001-of-00003.lmq and so on for NAME.lmq, all of them or none;
 * `replaces` takes away an older set of that name. With `resumes` a call that
 * ends without success leaves what it has done beside the output, as *.part,
 * and OUTPUT.journal, and the next one goes on with it; the result is the same
 * bytes. A limit of file sizes is an error only where SIGXFSZ is ignored; else
 * it ends the process. */
LMQ_API enum lmq_status
lmq_convert(struct lmq_checkpoint *checkpoint, const char *output,
            const struct lmq_convert_options *options,
            const struct lmq_progress *progress, struct lmq_report **report,
            struct lmq_error *err);

/* Whether the options can be right, of any checkpoint; opens nothing, so a
 * recipe is not asked. Else LMQ_ERR_ARG, if nothing is missing here. */
LMQ_API enum lmq_status
lmq_convert_check(const struct lmq_convert_options *options,
                  struct lmq_error *err);

/* ---- One file or several ---- */

struct lmq_copy_options {
    size_t size;
    uint64_t shard_size; /* bytes of a file at most; 0: one file */
    int replaces;        /* replace an existing output */
    int threads;         /* 0: OMP_NUM_THREADS, or all cores */
};

/* Writes a container, or a set of them, anew: with the same tensors, bit for
 * bit, and what is said of them, in one file or in others, which are those that
 * lmq_convert() would have written. Without shard_size `output` is that file;
 * with it an existing folder, in which the members are called as the
 * checkpoint's file is. All appear, or none. Checksums are compared on the
 * way. */
LMQ_API enum lmq_status
lmq_copy(struct lmq_checkpoint *checkpoint, const char *output,
         const struct lmq_copy_options *options,
         const struct lmq_progress *progress, struct lmq_report **report,
         struct lmq_error *err);

struct lmq_seal_options {
    size_t size;
    const char *source; /* of the parts; NULL: where it was */
    const struct lmq_open_options *open; /* as it was opened for them */
    int replaces;       /* replace an existing set */
    int threads;        /* 0: OMP_NUM_THREADS, or all cores */
};

/* The last step of a set of which each file was written by itself, with `part`
 * of n_parts: checks that all are in the folder and of one conversion, and
 * gives them their names. */
LMQ_API enum lmq_status
lmq_seal(const char *folder, const struct lmq_seal_options *options,
         const struct lmq_progress *progress, struct lmq_report **report,
         struct lmq_error *err);

/* ---- Exporting ---- */

/* All zero but for `to`: the defaults. */
struct lmq_export_options {
    size_t size;
    const char *to;      /* "gguf", "llama2c", "safetensors",
                            "compressed-tensors", "mlx", "gptq" */
    const char *type;    /* folders: "f32" (default), "f16", "bf16"; gguf:
                            these and "q8_0", NULL: what loses least */
    uint64_t shard_size; /* folders: bytes of a file at most; 0: one file */
    int replaces;        /* replace an existing output */
    int threads;         /* 0: OMP_NUM_THREADS, or all cores */
};

/* Writes a checkpoint, typically a container, in another tool's format: a
 * file; or a folder, for safetensors and those packed in them. */
LMQ_API enum lmq_status
lmq_export(struct lmq_checkpoint *checkpoint, const char *output,
           const struct lmq_export_options *options,
           const struct lmq_progress *progress, struct lmq_report **report,
           struct lmq_error *err);

/* ---- Looking at checkpoints ---- */

struct lmq_inspect_options {
    size_t size;
    int has_tensors;    /* list them */
    const char *tensor; /* only this one, by either name; NULL: all */
    int has_stats;      /* read the elements of `tensor` */
};

LMQ_API enum lmq_status
lmq_inspect(struct lmq_checkpoint *checkpoint,
            const struct lmq_inspect_options *options,
            struct lmq_report **report, struct lmq_error *err);

/* All zero: the defaults. */
struct lmq_verify_options {
    size_t size;
    int threads;         /* 0: OMP_NUM_THREADS, or all cores */
    const char *against; /* "sha256:HEX" or "HEX": the root or the content that
                            the container must have */
};

/* Checks every byte of a container, or of all members of the set that `path`,
 * a member or the folder, leads to. LMQ_ERR_FORMAT if something is damaged or
 * missing; the report then names each part, if it got that far. */
LMQ_API enum lmq_status lmq_verify(const char *path,
                                   const struct lmq_verify_options *options,
                                   const struct lmq_progress *progress,
                                   struct lmq_report **report,
                                   struct lmq_error *err);
/* The same of a container, or set, that is open. */
LMQ_API enum lmq_status
lmq_verify_checkpoint(const struct lmq_checkpoint *checkpoint,
                      const struct lmq_verify_options *options,
                      const struct lmq_progress *progress,
                      struct lmq_report **report, struct lmq_error *err);
/* The same of this file alone, also if it is a member of a set. */
LMQ_API enum lmq_status
lmq_verify_file(const char *path, const struct lmq_verify_options *options,
                const struct lmq_progress *progress,
                struct lmq_report **report, struct lmq_error *err);

/* All zero: the defaults. */
struct lmq_diff_options {
    size_t size;
    int threads; /* 0: OMP_NUM_THREADS, or all cores */
};

/* Compares two checkpoints tensor by tensor. */
LMQ_API enum lmq_status
lmq_diff(struct lmq_checkpoint *a, struct lmq_checkpoint *b,
         const struct lmq_diff_options *options,
         const struct lmq_progress *progress, struct lmq_report **report,
         struct lmq_error *err);

/* ---- Running ---- */

/* The weights of a checkpoint, ready to be multiplied. Read-only: sessions and
 * threads share it. The checkpoint must stay open as long. */
struct lmq_model;

LMQ_API enum lmq_status lmq_model_open(struct lmq_checkpoint *checkpoint,
                                       struct lmq_model **model,
                                       struct lmq_error *err);
LMQ_API void lmq_model_close(struct lmq_model *model);
LMQ_API size_t lmq_model_vocabulary(const struct lmq_model *model);
LMQ_API size_t lmq_model_context(const struct lmq_model *model);

/* One sequence of tokens: keys and values, buffers, a position. */
struct lmq_session;

/* All zero: the defaults. */
struct lmq_session_options {
    size_t size;
    size_t context;          /* positions; 0: the model's, at most 4096 */
    size_t batch;            /* tokens at a time; 0: 128 */
    const char *kv;          /* keys and values: "f32" (default), "f16", "q8",
                                or keys f16 and values q8: "f16-q8" */
    const char *activations; /* for int8 weights: "q8", "q16", "f32"; NULL:
                                what the container recommends */
    int all_logits;          /* keep those of the whole last batch */
    int threads;             /* 0: OMP_NUM_THREADS, or all cores */
};

LMQ_API enum lmq_status
lmq_session_new(const struct lmq_model *model,
                const struct lmq_session_options *options,
                struct lmq_session **session, struct lmq_error *err);
LMQ_API void lmq_session_free(struct lmq_session *session);

/* Appends tokens. The logits are the same bits however the tokens are cut
 * into calls and batches, for any number of threads, on any machine. After a
 * failure lmq_session_position() tells how many stand. */
LMQ_API enum lmq_status lmq_session_eval(struct lmq_session *session,
                                         const int32_t *tokens, size_t n,
                                         struct lmq_error *err);

/* The logits after the last token (index 0), or with all_logits after the one
 * `index` tokens before it; NULL if they were not kept. Valid until the next
 * evaluation. */
LMQ_API const float *lmq_session_logits(const struct lmq_session *session,
                                        size_t index);
LMQ_API size_t lmq_session_position(const struct lmq_session *session);
LMQ_API size_t lmq_session_context(const struct lmq_session *session);

/* Forgets everything from `position` on. Where layers remember a state instead
 * of keys and values, the next evaluation begins with what is left. */
LMQ_API void lmq_session_rewind(struct lmq_session *session, size_t position);

/* Makes room: keeps the first n_sinks tokens and the last ones, half of what it
 * holds in all, and evaluates these anew. */
LMQ_API enum lmq_status lmq_session_slide(struct lmq_session *session,
                                          size_t n_sinks,
                                          struct lmq_error *err);

/* ---- Text ---- */

/* Text to token ids and back. Immutable: threads may share it. */
struct lmq_tokenizer;

/* From the files that a checkpoint carries. */
LMQ_API enum lmq_status
lmq_tokenizer_from_checkpoint(const struct lmq_checkpoint *checkpoint,
                              struct lmq_tokenizer **tokenizer,
                              struct lmq_error *err);
/* The path of a tokenizer file or of a checkpoint. */
LMQ_API enum lmq_status
lmq_tokenizer_from_path(const char *path, const struct lmq_open_options *open,
                        struct lmq_tokenizer **tokenizer,
                        struct lmq_error *err);
LMQ_API void lmq_tokenizer_close(struct lmq_tokenizer *tokenizer);

/* What its file is: "Mistral", "Hugging Face", "GGUF", "SentencePiece",
 * "tiktoken", "llama2.c"; and one more than the largest id, some of which may
 * stand for nothing. */
LMQ_API const char *
lmq_tokenizer_kind(const struct lmq_tokenizer *tokenizer);
LMQ_API size_t lmq_tokenizer_size(const struct lmq_tokenizer *tokenizer);

/* 1 if a generation ends with this token. */
LMQ_API int lmq_tokenizer_ends(const struct lmq_tokenizer *tokenizer,
                               int32_t id);

/* What a token stands for, special ones by name; *is_text tells whether these
 * bytes are UTF-8 by themselves. They live as long as the tokenizer. */
LMQ_API enum lmq_status
lmq_tokenizer_token(const struct lmq_tokenizer *tokenizer, int32_t id,
                    const char **piece, size_t *n, int *is_text,
                    struct lmq_error *err);

enum {
    LMQ_TEXT_PLAIN = 1,  /* without the begin token that the model expects */
    LMQ_TEXT_SPECIAL = 2 /* special tokens count as such, and are shown */
};

/* *ids is released with lmq_tokens_free(). */
LMQ_API enum lmq_status lmq_tokenize(const struct lmq_tokenizer *tokenizer,
                                     const char *text, size_t n,
                                     unsigned flags, int32_t **ids,
                                     size_t *n_ids, struct lmq_error *err);
LMQ_API void lmq_tokens_free(int32_t *ids);

/* What these bytes, the beginning of a file, are if they are plainly no text:
 * "a GGUF file"; NULL if they may be one. */
LMQ_API const char *lmq_binary_kind(const char *bytes, size_t n);

/* The text of ids, with a 0 behind it; released with lmq_text_free(). */
LMQ_API enum lmq_status lmq_detokenize(const struct lmq_tokenizer *tokenizer,
                                       const int32_t *ids, size_t n,
                                       unsigned flags, char **text,
                                       size_t *n_text, struct lmq_error *err);

/* The same as the ids come: each call gives the text that is complete, in
 * whole characters, valid until the next call. An id below 0 ends the text and
 * gives what was held back. */
struct lmq_detokenizer;

LMQ_API enum lmq_status
lmq_detokenizer_new(const struct lmq_tokenizer *tokenizer, unsigned flags,
                    struct lmq_detokenizer **detokenizer,
                    struct lmq_error *err);
LMQ_API void lmq_detokenizer_free(struct lmq_detokenizer *detokenizer);
LMQ_API enum lmq_status
lmq_detokenizer_next(struct lmq_detokenizer *detokenizer, int32_t id,
                     const char **text, size_t *n, struct lmq_error *err);

/* ---- Conversations ---- */

/* How the model of a checkpoint writes down a conversation. Immutable. */
struct lmq_chat;

/* By the checkpoint's own chat template, which is recognised, never evaluated;
 * or by the name of a format. LMQ_ERR_UNSUPPORTED if there is no template or
 * none that is known, LMQ_ERR_ARG if the name is not. The tokenizer must stay
 * open as long. */
LMQ_API enum lmq_status lmq_chat_open(const struct lmq_checkpoint *checkpoint,
                                      const struct lmq_tokenizer *tokenizer,
                                      const char *chat_format,
                                      struct lmq_chat **chat,
                                      struct lmq_error *err);
LMQ_API void lmq_chat_close(struct lmq_chat *chat);

/* The name of its format. */
LMQ_API const char *lmq_chat_name(const struct lmq_chat *chat);

/* The names of all formats, from 0; NULL behind the last one. *models, unless
 * NULL, says whose format it is. */
LMQ_API const char *lmq_chat_format_at(size_t index, const char **models);

/* What was said. Special tokens that are spelt out in a text are words like
 * all others. */
struct lmq_chat_message {
    const char *role; /* "system" (only the first), "user", "assistant" */
    const char *text; /* UTF-8; NULL: nothing */
    size_t n;
    const int32_t *tokens; /* of an answer, before its text: as it was
                              generated, without the token that ended it; or
                              NULL */
    size_t n_tokens;
};

/* The whole conversation as tokens, and behind a last question what an answer
 * begins with. A last answer is written as a past one, before a question. *ids
 * is released with lmq_tokens_free(). */
LMQ_API enum lmq_status
lmq_chat_tokens(const struct lmq_chat *chat,
                const struct lmq_chat_message *messages, size_t n,
                int32_t **ids, size_t *n_ids, struct lmq_error *err);

/* The same as text, special tokens by name, with a 0 behind it; released with
 * lmq_text_free(). */
LMQ_API enum lmq_status
lmq_chat_text(const struct lmq_chat *chat,
              const struct lmq_chat_message *messages, size_t n, char **text,
              size_t *n_text, struct lmq_error *err);

/* 1 if an answer ends with this token. */
LMQ_API int lmq_chat_ends(const struct lmq_chat *chat, int32_t id);

/* Where the tokenizer lacks the token that ends an answer: the text that does;
 * else NULL. */
LMQ_API const char *lmq_chat_stop(const struct lmq_chat *chat);

/* For lmq_detokenizer_new(): LMQ_TEXT_SPECIAL where special tokens part an
 * answer into thoughts and words. */
LMQ_API unsigned lmq_chat_text_flags(const struct lmq_chat *chat);

/* ---- Sampling ---- */

/* All zero: the most likely token, always. */
struct lmq_sampler_options {
    size_t size;
    double temperature;
    long top_k;              /* 0: all */
    double top_p;            /* 0: off, as 1 */
    double min_p;
    double typical;          /* 0: off, as 1 */
    double repeat_penalty;   /* 0: off, as 1 */
    double frequency_penalty;
    double presence_penalty;
    long penalty_window;     /* tokens looked back on; 0: 64 */
    uint64_t seed;
};

struct lmq_sampler;

LMQ_API enum lmq_status
lmq_sampler_new(const struct lmq_sampler_options *options, size_t vocabulary,
                struct lmq_sampler **sampler, struct lmq_error *err);
LMQ_API void lmq_sampler_free(struct lmq_sampler *sampler);

/* Tells it what stands in the text; the penalties look at that. */
LMQ_API void lmq_sampler_accept(struct lmq_sampler *sampler, int32_t token);

/* The next token. The same seed, options and logits give the same one on
 * every machine. */
LMQ_API int32_t lmq_sampler_pick(struct lmq_sampler *sampler,
                                 const float *logits);

/* What a generation gave, for a report. */
struct lmq_generation {
    const int32_t *prompt;
    size_t n_prompt;
    const int32_t *made;
    size_t n_made;
    int is_ended; /* by the model's own end token */
    double prompt_seconds, seconds;
    const char *stop; /* the text that ended it, which is left out with what is
                         behind it; NULL: none */
};

LMQ_API enum lmq_status
lmq_generation_report(const struct lmq_tokenizer *tokenizer,
                      const struct lmq_generation *generation,
                      struct lmq_report **report, struct lmq_error *err);

/* ---- Measuring speed ---- */

struct lmq_bench_options {
    size_t size;
    const struct lmq_session_options *session; /* context 0: what is needed */
    size_t n_prefill; /* tokens at once; 0: 512 */
    size_t n_decode;  /* tokens one by one; 0: 128 */
    int rounds;       /* the median of so many; 0: 3 */
    size_t depth;     /* tokens that stand before those */
};

/* Measures loading (how long opening the checkpoint took, and the model),
 * prefill and decoding, and in the same run what the machine can do at
 * most. */
LMQ_API enum lmq_status lmq_bench(struct lmq_checkpoint *checkpoint,
                                  const struct lmq_bench_options *options,
                                  const struct lmq_progress *progress,
                                  struct lmq_report **report,
                                  struct lmq_error *err);

/* ---- Validating ---- */

/* All zero: the defaults. */
struct lmq_validate_options {
    size_t size;
    const char *const *texts; /* files, plain or .gz; "-" is standard input */
    size_t n_texts;
    const char *tokens;       /* instead: raw ids, little-endian, of 4 bytes if
                                 the vocabulary has more than 65536, else of 2,
                                 or wider, up to 8, where what is more is 0 */
    /* The window (context 0: 512, or what the model has room for), threads,
     * and of the judged model activations, keys and values. */
    const struct lmq_session_options *session;
    size_t stride;            /* 0: as context */
    const char *score;        /* "all" (default), "second-half" */
    size_t max_tokens;        /* 0: all of the text */
    int splits_documents;     /* each paragraph of the texts is a document */
    uint64_t memory;          /* bytes; 0: half of what is free */
    int has_attribution;
    int has_floor;            /* the reference against itself too */
    const char *const *gates; /* as for lmq_gates_apply() */
    size_t n_gates;
    int skips_checksums;      /* do not compare those of a container */
    const char *page; /* where the caller will write one: looked at before the
                         work, and never one of the files that are read */
    int replaces;     /* the page may stand there already */
    const char *baseline; /* an earlier report as JSON, of the same text: gates
                             may say "kld.mean<=baseline*1.05" */
    const char *task;     /* a file of multiple-choice questions, or NULL */
    const char *const *emulations; /* judged behind the models: the reference as
                                      other programs would round it, "q8_0",
                                      "q5_0", "q5_1", "q4_0", "q4_1", "runq" */
    size_t n_emulations;
    /* Only the windows of one of n_parts parts, from 1; 0, 0: all. The report
     * is then what lmq_merge() needs of it, and can be kept by
     * lmq_validate_write_part(). */
    unsigned part;
    unsigned n_parts;
    const char *attribution; /* with has_attribution: "layer" (default), or
                                "tensor": to each of them too */
};

/*
 * How far is `judged` from `reference`, which is computed in float32? Both run
 * over the same tokens, layer by layer, within the given memory. *is_partial,
 * or NULL, tells that the progress callback stopped the work and that the
 * report covers what was done until then.
 */
LMQ_API enum lmq_status
lmq_validate(struct lmq_checkpoint *reference, struct lmq_checkpoint *judged,
             const struct lmq_validate_options *options,
             const struct lmq_progress *progress, struct lmq_report **report,
             int *is_partial, struct lmq_error *err);

/*
 * The same for several at once: the reference runs once, all others beside it.
 * The report of several has one for each in "models", with the figures that
 * lmq_validate() gives it alone, and how far they are from each other; that of
 * one is lmq_validate()'s. With emulations there need be no model.
 */
LMQ_API enum lmq_status
lmq_validate_several(struct lmq_checkpoint *reference,
                     struct lmq_checkpoint *const *judged, size_t n_judged,
                     const struct lmq_validate_options *options,
                     const struct lmq_progress *progress,
                     struct lmq_report **report, int *is_partial,
                     struct lmq_error *err);

/* Whether the options can be right, of any models; opens nothing. Else
 * LMQ_ERR_ARG. */
LMQ_API enum lmq_status
lmq_validate_check(const struct lmq_validate_options *options,
                   struct lmq_error *err);

/* What became of .part: as text with all digits, released with
 * lmq_text_free(); or in a file, which appears whole or not at all. */
LMQ_API enum lmq_status lmq_validate_part(const struct lmq_report *part,
                                          char **text, struct lmq_error *err);
LMQ_API enum lmq_status
lmq_validate_write_part(const struct lmq_report *part, const char *path,
                        int replaces, struct lmq_error *err);

/* All zero: the defaults. What the members mean is as in
 * lmq_validate_options. */
struct lmq_merge_options {
    size_t size;
    const char *const *gates;
    size_t n_gates;
    const char *baseline;
    const char *page;
    int replaces;
};

/*
 * The report that lmq_validate_several() would have made without .part, of the
 * files of all parts, in any order; but for its times, which are the sums of
 * theirs. What is missing, there twice or of another run is LMQ_ERR_FORMAT.
 * The second takes their texts; `names` are for messages. If n is 0 only the
 * options are looked at.
 */
LMQ_API enum lmq_status lmq_merge(const char *const *paths, size_t n,
                                  const struct lmq_merge_options *options,
                                  struct lmq_report **report,
                                  struct lmq_error *err);
LMQ_API enum lmq_status
lmq_merge_texts(const char *const *names, const char *const *texts, size_t n,
                const struct lmq_merge_options *options,
                struct lmq_report **report, struct lmq_error *err);

/* A report of lmq_validate() as one self-contained HTML page; released with
 * lmq_text_free(). */
LMQ_API enum lmq_status lmq_validate_html(const struct lmq_report *report,
                                          char **text, struct lmq_error *err);

/* The same in a file, which appears whole or not at all. */
LMQ_API enum lmq_status
lmq_validate_write_html(const struct lmq_report *report, const char *path,
                        int replaces, struct lmq_error *err);

/* ---- Planning ---- */

/* All zero but for a text, and one of the targets or a part. */
struct lmq_planning_options {
    size_t size;
    const char *const *texts; /* files, plain or .gz; "-" is standard input */
    size_t n_texts;
    const char *tokens;       /* instead: raw ids, little-endian, of 4 bytes if
                                 the vocabulary has more than 65536, else of 2,
                                 or wider, up to 8, where what is more is 0 */
    const struct lmq_session_options *session; /* context, threads */
    size_t max_tokens;        /* all over the text; 0: 16384, and four times as
                                 many for a choice that stays uncertain */
    uint64_t target_size;     /* bytes of the container at most; */
    double target_bits;       /* or bits per weight; */
    double target_kld;        /* or the mean divergence, with the least bytes */
    uint64_t memory;          /* bytes; 0: half of what is free */
    int skips_checksums;      /* do not compare those of a container */
    const char *page; /* where a page is written: it and the recipe appear, or
                         neither */
    int replaces;     /* they may stand there already */
    /* Only what is due to one of n_parts parts, from 1, is measured; 0, 0: all.
     * A target, a recipe and a page are looked at then, if they are given, but
     * nothing is written: the report is for lmq_plan_write_part(). */
    unsigned part;
    unsigned n_parts;
    /* What all parts have found, in any order, which is not measured again:
     * files, or what would stand in them. */
    const char *const *measured;
    size_t n_measured;
    int measured_are_texts;
    int rotates; /* weigh rotated encodings too */
    int chooses_kv; /* keys and values of as few bits as add little: "kv" of the
                       report */
    int splits_documents; /* each paragraph is a document */
};

/* Chooses for each matrix what it becomes, by what that costs in divergence
 * over a text, so that a conversion by the recipe keeps to the target and loses
 * least; measures that. `output`: where the recipe goes, or NULL. A target that
 * cannot be met is LMQ_ERR_ARG, and the message says which can. Of parts that
 * are missing, there twice or of another plan: LMQ_ERR_FORMAT. */
LMQ_API enum lmq_status
lmq_plan_recipe(struct lmq_checkpoint *checkpoint, const char *output,
                const struct lmq_planning_options *options,
                const struct lmq_progress *progress,
                struct lmq_report **report, struct lmq_error *err);

/* What became of .part in a file, which appears whole or not at all; as text it
 * is what lmq_report_text() gives as JSON. */
LMQ_API enum lmq_status
lmq_plan_write_part(const struct lmq_report *part, const char *path,
                    int replaces, struct lmq_error *err);

/* Its report as one self-contained HTML page; released with lmq_text_free().
 * And the same in a file, which appears whole or not at all. */
LMQ_API enum lmq_status lmq_plan_html(const struct lmq_report *report,
                                      char **text, struct lmq_error *err);
LMQ_API enum lmq_status lmq_plan_write_html(const struct lmq_report *report,
                                            const char *path, int replaces,
                                            struct lmq_error *err);

/* ---- Gates ---- */

/*
 * A gate is "METRIC<=VALUE" (also <, >=, >), METRIC a dotted path into a
 * report. lmq_gate_check() says whether it is well formed;
 * lmq_gates_apply() appends "gates" to the report and tells how many of them
 * did not hold. A metric that the report does not have, or that is no number,
 * is LMQ_ERR_ARG; so is a VALUE "baseline", which lmq_validate() knows.
 */
LMQ_API enum lmq_status lmq_gate_check(const char *gate,
                                       struct lmq_error *err);
/* And whether METRIC is one that validations have. */
LMQ_API enum lmq_status lmq_validate_check_gate(const char *gate,
                                                struct lmq_error *err);
LMQ_API enum lmq_status lmq_gates_apply(struct lmq_report *report,
                                        const char *const *gates,
                                        size_t n_gates, size_t *n_broken,
                                        struct lmq_error *err);

#ifdef __cplusplus
}
#endif

#endif
