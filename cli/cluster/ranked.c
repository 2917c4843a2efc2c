/*
 * ranked.c - convert, validate and plan by many ranks: parts, and the first
 * rank puts them together.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

/* The same command line, but that the result is somebody else's to show. */
static void
hush(const struct arguments *arguments, struct arguments *own)
{
    static const char quiet[] = "quiet";

    *own = *arguments;
    own->n_given = 0;
    for (int i = 0; i < arguments->n_given; i++) {
        const char *name = arguments->given[i].option->name;
        if (strcmp(name, "json") != 0 && strcmp(name, "yaml") != 0 &&
            strcmp(name, "verbose") != 0)
            own->given[own->n_given++] = arguments->given[i];
    }
    if (own->n_given < MAX_OCCURRENCES)
        own->given[own->n_given++].option =
            find_option(arguments->command, quiet, strlen(quiet));
}

/* ---- Converting ---- */

static bool
is_calibrated(const struct lmq_convert_options *convert)
{
    return convert->n_calibration > 0 || convert->writes_text != 0;
}

/* What many processes cannot do, or would do otherwise. */
static bool
check_options(const struct arguments *arguments, const struct ranks *ranks,
              const struct lmq_convert_options *convert)
{
    if (is_calibrated(convert) && convert->n_parts != ranks->n)
        usage_error(arguments->command,
                    "--%s goes with one file for each of the %u ranks, not "
                    "with --parts=%u",
                    convert->writes_text ? "own-text" : "calibrate", ranks->n,
                    convert->n_parts);
    else if (!have_texts(arguments))
        return false;
    else if (has_option(arguments, "shard-size"))
        usage_error(arguments->command,
                    "--shard-size goes without many ranks: --parts N says how "
                    "many files they write");
    else
        return true;
    return false;
}

/* The set that all have written. */
static int
seal(const struct arguments *arguments)
{
    char *folder = output_folder(arguments->operands[1]);
    int code = EXIT_SYSTEM;

    if (folder == NULL)
        print_error("out of memory");
    else
        code = seal_folder(arguments, folder);
    free(folder);
    return code;
}

int
convert_by_ranks(const struct arguments *arguments, const struct ranks *ranks,
                 struct lmq_convert_options *convert,
                 const struct writing *writing)
{
    const struct lmq_peers peers = {
        .rank = ranks->rank, .n = ranks->n, .share = share_bytes};
    struct arguments own;
    int code = EXIT_DONE;

    if (convert->n_parts == 0)
        convert->n_parts = ranks->n;
    if (!check_options(arguments, ranks, convert))
        return EXIT_USAGE;
    hush(arguments, &own);
    if (is_calibrated(convert))
        convert->peers = &peers;
    convert->part = ranks->rank + 1;
    for (; convert->part <= convert->n_parts && code == EXIT_DONE;
         convert->part += ranks->n)
        code = write_model(&own, writing);
    if (code != EXIT_DONE)
        return code;
    wait_for_ranks(ranks);
    return ranks->rank == 0 ? seal(arguments) : EXIT_DONE;
}

/* ---- What all have found, at the first rank ---- */

/* What it makes of n texts; returns the exit code. */
typedef int make_of_all(const void *context, const char *const *names,
                        const char *const *texts, size_t n);

static int
make_of(const struct ranks *ranks, const char *const *texts,
        make_of_all *make, const void *context)
{
    char(*names)[32] = calloc(ranks->n, sizeof(*names));
    const char **list = calloc(ranks->n, sizeof(*list));
    int code = EXIT_SYSTEM;

    if (names == NULL || list == NULL) {
        print_error("out of memory");
    } else {
        for (unsigned i = 0; i < ranks->n; i++) {
            snprintf(names[i], sizeof(names[i]), "rank %u", i);
            list[i] = names[i];
        }
        code = make(context, list, texts, ranks->n);
    }
    free((void *)list);
    free(names);
    return code;
}

/* `own` may be NULL, if there was no memory for it. */
static int
gather(const struct ranks *ranks, char *own, make_of_all *make,
       const void *context)
{
    char **texts = calloc(ranks->n, sizeof(*texts));
    int code = EXIT_DONE;

    if (texts == NULL || own == NULL || !gather_texts(ranks, own, texts)) {
        print_error("out of memory");
        code = EXIT_SYSTEM;
    } else if (ranks->rank == 0) {
        code = make_of(ranks, (const char *const *)texts, make, context);
    }
    for (unsigned i = 1; texts != NULL && i < ranks->n; i++)
        free(texts[i]);
    free((void *)texts);
    return code;
}

/* ---- Validating ---- */

struct merging {
    const struct arguments *arguments;
    const struct lmq_merge_options *options;
};

static int
merge(const void *context, const char *const *names, const char *const *texts,
      size_t n)
{
    const struct merging *merging = context;
    struct lmq_report *report = NULL;
    struct lmq_error err;
    int code = lmq_merge_texts(names, texts, n, merging->options, &report,
                               &err) == LMQ_OK
                   ? show_outcome(merging->arguments, report, false)
                   : report_error(&err);

    lmq_report_free(report);
    return code;
}

int
merge_ranks(const struct arguments *arguments, const struct ranks *ranks,
            const struct lmq_merge_options *options,
            const struct lmq_report *part)
{
    const struct merging merging = {arguments, options};
    struct lmq_error err;
    char *own = NULL;

    lmq_validate_part(part, &own, &err);
    int code = gather(ranks, own, merge, &merging);
    lmq_text_free(own);
    return code;
}

/* ---- Planning ---- */

static int
plan(const void *context, const char *const *names, const char *const *texts,
     size_t n)
{
    const struct planning *planning = context;
    struct lmq_planning_options options = *planning->options;

    (void)names;
    options.part = options.n_parts = 0;
    options.measured = texts;
    options.n_measured = n;
    options.measured_are_texts = 1;
    return planning->make(planning, &options);
}

int
plan_by_ranks(const struct planning *planning, const struct ranks *ranks,
              const struct lmq_report *part)
{
    struct lmq_error err;
    char *own = NULL;

    lmq_report_text(part, LMQ_REPORT_JSON, &own, &err);
    int code = gather(ranks, own, plan, planning);
    lmq_text_free(own);
    return code;
}
