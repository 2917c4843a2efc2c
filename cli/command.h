/*
 * command.h - what the subcommands share: their table, their arguments, the
 * terminal. The only header besides lmquant.h that they see.
 */
#ifndef LMQ_CLI_COMMAND_H
#define LMQ_CLI_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lmquant.h"

/* The contract with scripts; lmquant(1), "EXIT STATUS". */
enum exit_code {
    EXIT_DONE = 0,
    EXIT_SYSTEM = 1,
    EXIT_USAGE = 2,
    EXIT_INPUT = 3,
    EXIT_GATE = 4
};

/* ---- Arguments (arguments.c) ---- */

struct option {
    char letter;          /* 0: none */
    const char *name;     /* "group-size" */
    const char *argument; /* "N"; NULL for a switch; "[WHAT]": may be left
                             out */
    const char *help;     /* a line or two, broken with \n */
};

/* Its value stands directly behind it then, or not at all. */
static inline bool
option_is_optional(const struct option *option)
{
    return option->argument != NULL && option->argument[0] == '[';
}

/* The words that the value of an option may be, the last NULL. */
struct choice {
    const char *option; /* its name */
    const char *const *words;
};

/* Options that many commands share. */
enum common {
    COMMON_WORK = 1, /* -j, --progress */
    COMMON_OPEN = 2  /* --tokenizer, --config, --rope-theta, --norm-eps,
                        --no-mmap */
};

#define MAX_OPERANDS 64
#define MAX_PARTS 4096 /* of the commands that take the files of many parts */
#define MAX_OCCURRENCES 1024

/* The parsed command line. */
struct arguments {
    const struct command *command;
    struct {
        const struct option *option;
        const char *value;
    } given[MAX_OCCURRENCES];
    int n_given;
    const char *operands[MAX_PARTS];
    int n_operands;
};

struct command {
    const char *name;
    const char *summary;  /* for the list of commands */
    const char *operands; /* "CHECKPOINT OUTPUT.lmq" */
    const char *about;    /* a paragraph for --help */
    int least, most;      /* operands */
    int texts;            /* those from this one on are texts, which may come
                           * from standard input, "-"; 0: none */
    bool only_reads;      /* writes no files; lmquant(1), "Sandbox" */
    unsigned common;      /* besides -q, -v, -h, which all have */
    const struct option *options; /* ends with a NULL name */
    const struct option *also;    /* those of the command that jobs is for, or
                                     NULL */
    const struct choice *choices; /* ends with a NULL option; NULL: none */
    /* Whether its words can be right: EXIT_DONE, or the code, and a message.
     * Opens nothing. Only of those that jobs is for, which asks instead of
     * run(). */
    int (*check)(const struct arguments *arguments);
    int (*run)(const struct arguments *arguments);
};

extern const struct command command_convert;
extern const struct command command_inspect;
extern const struct command command_verify;
extern const struct command command_diff;
extern const struct command command_export;
extern const struct command command_split;
extern const struct command command_join;
extern const struct command command_seal;
extern const struct command command_merge;
extern const struct command command_jobs;
extern const struct command command_run;
extern const struct command command_validate;
extern const struct command command_plan;
extern const struct command command_tokenize;
extern const struct command command_bench;

/* Returns -1 if the command may run, else the exit code. */
int parse_arguments(const struct command *command, int argc, char **argv,
                    struct arguments *arguments);
void print_command_help(const struct command *command);
/* False, and a message, if a text is standard input: of many ranks only one
 * would have it. */
bool have_texts(const struct arguments *arguments);
/* jobs for one of the commands that it knows, which has its options too; false
 * if none is named (cluster/cmd_jobs.c). */
bool take_jobs(int argc, char **argv, struct command *jobs);
/* The tables that the options of a command stand in, each ending with a NULL
 * name; those that it has not are empty. */
#define N_TABLES 5
void list_tables(const struct command *command,
                 const struct option *tables[N_TABLES]);
/* The one whose name is these n characters; NULL: there is none. */
const struct option *find_option(const struct command *command,
                                 const char *name, size_t n);

/* What bash, zsh or fish reads to complete command lines of these commands, of
 * which the last is NULL; returns the exit code (show/completions.c). */
int print_completions(const struct command *const *commands,
                      const char *shell);

/* ---- Values (values.c) ---- */

bool has_option(const struct arguments *arguments, const char *name);
/* The last value given, or NULL. */
const char *option_text(const struct arguments *arguments, const char *name);
/* All values of an option that may be repeated; at most `most` of them. */
int option_texts(const struct arguments *arguments, const char *name,
                 const char **texts, int most);
/* These leave *value as it is if the option is not there; false, and a
 * message, if it is there but no number in the range. */
bool option_integer(const struct arguments *arguments, const char *name,
                    long least, long most, long *value);
/* "2/8". */
bool option_part(const struct arguments *arguments, const char *name,
                 long most, unsigned *part, unsigned *n_parts);
bool option_real(const struct arguments *arguments, const char *name,
                 double least, double most, double *value);
bool option_seed(const struct arguments *arguments, const char *name,
                 uint64_t *value);
/* One of the words that the command's .choices have for it. */
bool option_choice(const struct arguments *arguments, const char *name,
                   const char **value);
/* These words, of which the last is NULL; NULL if it may be anything. */
const char *const *find_choices(const struct command *command,
                                const char *name);
extern const char *const kv_types[];
extern const char *const activation_modes[];
/* --kv and --activations. */
extern const struct choice computing_choices[];
/* "4G", "500MB", "1000000"; K is `kilo`, 1000 or 1024. False, and a message,
 * if it is there but no size. */
bool option_size(const struct arguments *arguments, const char *name,
                 unsigned kilo, uint64_t *value);
/* --tokenizer, --config, --rope-theta, --norm-eps, --no-mmap. */
bool open_options(const struct arguments *arguments,
                  struct lmq_open_options *options);
bool thread_option(const struct arguments *arguments, int *threads);

/* ---- Did you mean (show/suggest.c) ---- */

struct suggestion {
    const char *wanted; /* what was written */
    const char *prefix; /* to be shown before `best`; NULL: nothing */
    const char *best;   /* the nearest so far; NULL: none is near */
    int distance;
};

void suggest(struct suggestion *suggestion, const char *candidate);

/* ---- Texts (input.c, sample.c) ---- */

/* The sample for `validate`, in a buffer of the caller's; NULL if it is
 * nowhere. */
#define SAMPLE_PATH_SIZE 8192
const char *find_sample(char *path, size_t size);

/* All of a file, or of standard input if the path is "-" or NULL, with a 0
 * behind it; NULL and a message, *code the exit code. What is plainly no text
 * is refused by name. */
char *read_text(const char *path, size_t *n, int *code);
/* False, and a message, if the name of an output belongs to another format
 * than `written`, an ending as in ".lmq" (output_name.c). */
bool check_output_name(const char *output, const char *written);
/* The folder that an output stands in; released with free(), NULL without
 * memory. */
char *output_folder(const char *output);

/* ---- Messages (show/messages.c; remarks: show/terminal.c) ---- */

/* A text of the library with the options of the command line in place of
 * members of structures: "--scales" for ".scales" (show/flags.c). */
void print_flags(FILE *to, const char *text);
/* The file that it is about, which the library has not seen. */
void name_file(struct lmq_error *err, const char *path);
/* "lmquant: FILE: what is wrong", then the hint; returns the exit code. */
int report_error(const struct lmq_error *err);
/* "lmquant: ..." of a file that the library has not seen. */
void print_error(const char *format, ...) LMQ_PRINTF(1, 2);
/* A mapped file that was truncated ends the program with a message. */
void catch_truncation(void);
int usage_error(const struct command *command, const char *format, ...)
    LMQ_PRINTF(2, 3);
/* The same, with the word that may have been meant, if there is one. */
int suggestion_error(const struct command *command,
                     const struct suggestion *suggestion, const char *format,
                     ...) LMQ_PRINTF(3, 4);
/* "note: ..." on stderr, unless -q. */
void print_note(const struct arguments *arguments, const char *format, ...)
    LMQ_PRINTF(2, 3);
void print_notes(const struct arguments *arguments,
                 const struct lmq_report *report);

/* ---- Progress, interruption (show/progress.c) ---- */

struct progress_state {
    const char *unit; /* "weights", where the stage has no other */
    int style;
    bool is_shown; /* a bar is on the screen */
    double started, last_shown;
    double stage_started, stage_done; /* when it began, what was done then */
    char stage[64]; /* without its figures */
    uint64_t done;
    /* The report as data, made before the output appears (approve_report()). */
    const struct arguments *arguments;
    char *text;
    struct lmq_error error;
};

/* SIGINT, SIGTERM and SIGHUP end the program only where work asks for them, and
 * at last (end_by_signal()). */
void catch_signals(void);
/* Does so. *progress points to *state. False if --progress is not
 * understood. */
bool start_progress(const struct arguments *arguments, const char *unit,
                    struct progress_state *state,
                    struct lmq_progress *progress);
/* Wipes the bar away. */
void end_progress(struct progress_state *state);
double seconds_now(void);
/* While nothing is at work SIGTERM and SIGHUP, and ^C where nobody sits at a
 * terminal, end the program at once. */
void rest(bool is_resting);
/* Whether ^C was pressed; it counts as not pressed from here on. */
bool forget_interrupt(void);
/* After the cleanup: dies by the signal that asked to end, if one did, so that
 * a shell's loop ends too. Else returns the code. */
int end_by_signal(int code);

/* ---- A model in, a model out (write_model.c) ---- */

struct writing {
    enum lmq_status (*write)(struct lmq_checkpoint *checkpoint,
                             const char *output, const void *options,
                             const struct lmq_progress *progress,
                             struct lmq_report **report,
                             struct lmq_error *err);
    const void *options;
    void (*print_summary)(const struct arguments *arguments,
                          const struct lmq_report *report, double seconds);
};

/* From the first operand to the second; returns the exit code. */
int write_model(const struct arguments *arguments,
                const struct writing *writing);
/* What seal does (cmd_seal.c). */
int seal_folder(const struct arguments *arguments, const char *folder);

/* ---- Output (show/terminal.c) ---- */

/* --json or --yaml: no text for people. */
bool wants_data(const struct arguments *arguments);
/* For struct lmq_progress: --json or --yaml get their text while nothing has
 * been replaced yet. finish_report() prints it, returns the exit code, or -1 if
 * neither is given; a failure before it is told by approval_error(). */
int approve_report(void *state, const struct lmq_report *report);
int finish_report(struct progress_state *state);
int approval_error(struct progress_state *state, const struct lmq_error *err);
/* --json or --yaml: the report as text, before anything else appears; NULL if
 * neither is given. False, and a message, if there is no memory for it. */
bool make_report_text(const struct arguments *arguments,
                      const struct lmq_report *report, char **text, int *code);
/* Prints it and returns the exit code; -1 if it is NULL. */
int print_report_text(char *text);
/* Both. */
int print_report(const struct arguments *arguments,
                  const struct lmq_report *report);
/* "1.51 MB", "378 k"; in a small buffer of the caller's. */
#define TEXT_SIZE 32
const char *format_bytes(double n, char text[TEXT_SIZE]);
const char *format_count(double n, char text[TEXT_SIZE]);
/* "?" where there is none: an error that a single token leaves unknown, or what
 * is too large to be a number. */
const char *format_figure(const char *format, double value,
                          char text[TEXT_SIZE]);
/* Of a share, for "%.1f": never "-0.0". */
double percent(const struct lmq_report *report, const char *share);
/* The larger of a standard error and the one by document, if that is known:
 * neighbours in a text are alike. */
double larger_error(const struct lmq_report *report, const char *name);
/* "s", or "" for 1. */
const char *plural(double n);
/* A gate's, or why there is none. */
const char *format_metric(double value, char *text);
const char *format_bound(double bound, char *text);
/* Cuts a name in the middle so that it takes at most `width` columns. */
void print_name(const char *name, int width);
/* False, and a message the first time, if stdout takes no more: a full disk
 * behind a pipe is an error too. */
bool flush_output(void);
int finish_output(int code);

/* The report of a validation of one model (show/show_validate.c), of several
 * and in Markdown (show/show_models.c). */
void print_validation(const struct arguments *arguments,
                      const struct lmq_report *report);
void print_verdict(const struct lmq_report *report);
void print_broken(const struct lmq_report *verdict);
void print_protocol(const struct lmq_report *report);
bool has_short_kv(const struct lmq_report *model); /* not in float32 */
void print_models(const struct arguments *arguments,
                  const struct lmq_report *report);
void print_markdown(const struct lmq_report *report);

/* Text from a file for one line of a terminal: the last `most` characters,
 * controls escaped; freed with free(). */
char *escape_text(const char *text, int most);

/* ---- Many processes (cluster/ranks.c, the only one that knows MPI) ---- */

/* Those that mpirun has started together; without it one. */
struct ranks {
    unsigned rank, n; /* from 0 */
};

/* False, and a message, if there are many and they cannot find each other. */
bool start_ranks(const struct arguments *arguments, struct ranks *ranks);
/* What this one ends with; returns it, or ends all of them. */
int end_ranks(const struct ranks *ranks, int code);
void wait_for_ranks(const struct ranks *ranks);
/* The texts of all, for the first one; released with free(), but for its
 * own. */
bool gather_texts(const struct ranks *ranks, char *own, char **texts);
/* For struct lmq_peers. */
int share_bytes(void *context, unsigned from, void *bytes, size_t n);

/* cluster/ranked.c: files of a set, sealed by the first rank; parts of a
 * validation or of a plan, merged and shown by it. */
struct writing;
int convert_by_ranks(const struct arguments *arguments,
                     const struct ranks *ranks,
                     struct lmq_convert_options *convert,
                     const struct writing *writing);
int merge_ranks(const struct arguments *arguments, const struct ranks *ranks,
                const struct lmq_merge_options *options,
                const struct lmq_report *part);
/* A plan of a checkpoint that is open, and what makes and shows it when the
 * measured texts are in the options. */
struct planning {
    const struct arguments *arguments;
    struct lmq_checkpoint *checkpoint;
    const struct lmq_planning_options *options;
    const struct lmq_progress *progress;
    struct progress_state *state;
    int (*make)(const struct planning *planning,
                const struct lmq_planning_options *plan);
};
int plan_by_ranks(const struct planning *planning, const struct ranks *ranks,
                  const struct lmq_report *part);

/* What ends validate and merge (cluster/outcome.c): the page of --report, the
 * report, the gates. The page may be standard output, which two things cannot
 * share. */
bool is_page_output(const char *html);
/* The file that standard output goes to, which a page would replace. */
bool is_where_output_goes(const char *html);
bool has_one_output(const struct arguments *arguments);
int show_outcome(const struct arguments *arguments,
                 const struct lmq_report *report, bool is_partial);

/* Applies --gate, prints what did not hold; returns the exit code. */
int apply_gates(const struct arguments *arguments, struct lmq_report *report);
/* The second half of that, for a report that has its gates already. */
int print_gates(const struct lmq_report *report);
bool check_gates(const struct arguments *arguments);

#endif
