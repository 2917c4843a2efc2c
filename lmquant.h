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

/* What went wrong. Plain text, one line each, control characters escaped. */
struct lmq_error {
    enum lmq_status status;
    uint64_t offset;    /* in the file, where that makes sense */
    char path[256];     /* the file concerned, or "" */
    char message[512];
    char hint[256];     /* what to do about it, or "" */
};

/* ---- Library ---- */

/* "0.1.0": the version of the library in use. */
LMQ_API const char *lmq_version(void);

/* "avx512vnni": the instruction set that the kernels use. It is the best that
 * the machine has, or what the environment variable LMQUANT_CPU names. */
LMQ_API const char *lmq_instruction_set(void);

/* Called now and then from the calling thread; a value other than 0 stops
 * the work, which then returns LMQ_ERR_CANCELLED and leaves no traces. */
struct lmq_progress {
    int (*report)(void *context, const char *stage, uint64_t done,
                  uint64_t total);
    void *context;
};

/* ---- Reports ---- */

/*
 * What a command found: a tree of objects, arrays, numbers and strings with
 * the keys that the manual documents. Text for people, JSON, YAML and gates
 * are all made from this one tree.
 */
struct lmq_report;

enum lmq_report_format { LMQ_REPORT_JSON, LMQ_REPORT_YAML };

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

/* The number (or boolean) at a path, NAN if there is none; the string, ""
 * if there is none. */
LMQ_API double lmq_report_number(const struct lmq_report *node,
                                 const char *path);
LMQ_API const char *lmq_report_string(const struct lmq_report *node,
                                      const char *path);

/* ---- Checkpoints ---- */

/* A model in a file or folder of any known format. */
struct lmq_checkpoint;

/* What a file may not carry itself. All zero: nothing is given. */
struct lmq_open_options {
    const char *tokenizer; /* a tokenizer file */
    const char *config;    /* a config.json */
    double rope_theta;
    double norm_eps;
};

LMQ_API enum lmq_status
lmq_checkpoint_open(const char *path, const struct lmq_open_options *options,
                    struct lmq_checkpoint **checkpoint, struct lmq_error *err);
LMQ_API void lmq_checkpoint_close(struct lmq_checkpoint *checkpoint);

/* ---- Converting ---- */

/* All zero but for what is set: the defaults. Names are those of the command
 * line; NULL is the default. */
struct lmq_convert_options {
    unsigned group_size;      /* 0: 64 */
    const char *scales;       /* "f16", "f32" */
    const char *method;       /* "absmax", "search" */
    const char *tie;          /* "auto", "never" */
    const char *on_nonfinite; /* "fail", "zero" */
    const char *layout;       /* "rows", "tiles" */
    int is_dry_run;           /* report the plan, write nothing */
    int replaces;             /* replace an existing output */
    int is_compressed;        /* deflate the tokenizer */
    int threads;              /* 0: OMP_NUM_THREADS, or all cores */
};

/* Writes a checkpoint as a .lmq container, whole or not at all. *report may be
 * NULL; else it is released with lmq_report_free(). */
LMQ_API enum lmq_status
lmq_convert(struct lmq_checkpoint *checkpoint, const char *output,
            const struct lmq_convert_options *options,
            const struct lmq_progress *progress, struct lmq_report **report,
            struct lmq_error *err);

/* ---- Looking at checkpoints ---- */

struct lmq_inspect_options {
    int has_tensors;    /* list them */
    const char *tensor; /* only this one, by either name; NULL: all */
    int has_stats;      /* read the elements of `tensor` */
};

LMQ_API enum lmq_status
lmq_inspect(struct lmq_checkpoint *checkpoint,
            const struct lmq_inspect_options *options,
            struct lmq_report **report, struct lmq_error *err);

/* Checks every byte of a container. LMQ_ERR_FORMAT if something is damaged;
 * the report then names each part, if it got that far (else it is NULL). */
LMQ_API enum lmq_status lmq_verify(const char *path, int threads,
                                   const struct lmq_progress *progress,
                                   struct lmq_report **report,
                                   struct lmq_error *err);

/* Compares two checkpoints tensor by tensor. */
LMQ_API enum lmq_status
lmq_diff(struct lmq_checkpoint *a, struct lmq_checkpoint *b, int threads,
         const struct lmq_progress *progress, struct lmq_report **report,
         struct lmq_error *err);

/* ---- Gates ---- */

/*
 * A gate is "METRIC<=VALUE" (also <, >=, >), METRIC a dotted path into a
 * report. lmq_gate_check() says whether it is well formed;
 * lmq_gates_apply() appends "gates" to the report and tells how many of them
 * did not hold. A metric that the report does not have, or that is no number,
 * is LMQ_ERR_ARG.
 */
LMQ_API enum lmq_status lmq_gate_check(const char *gate,
                                       struct lmq_error *err);
LMQ_API enum lmq_status lmq_gates_apply(struct lmq_report *report,
                                        const char *const *gates,
                                        size_t n_gates, size_t *n_broken,
                                        struct lmq_error *err);

#ifdef __cplusplus
}
#endif

#endif
