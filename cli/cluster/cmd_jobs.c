/*
 * cmd_jobs.c - lmquant jobs: a script that has many machines do the work of
 * one command.
 *
 * The script is for reading too, so it says what each machine reads and
 * writes. Nothing is run from here.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

static const struct option options[] = {
    {0, "nodes", "N", "how many parts, a machine each (needed)"},
    {0, "parallel", NULL, "a script for GNU parallel in place of Slurm"},
    {0, "sbatch", "OPTION",
     "an option of sbatch for all jobs, as in\n"
     "'--partition=cpu'; repeatable"},
    {0, "parts-folder", "FOLDER",
     "of validate: where the parts come to (lmquant-parts)"},
    {0, "rate", "SIZE",
     "of the arithmetic: bytes of the source that a machine\n"
     "converts, or reads in a validation, per second"},
    {0, NULL, NULL, NULL},
};

/* ---- Which words go where ---- */

/* Of validate, what the last step is told. */
static const char *const of_merge[] = {"report", "gate",  "baseline",
                                       "markdown", "json", "yaml", NULL};
/* What the parts decide themselves, or cannot have. */
static const char *const refused[] = {
    "part",   "parts",     "shard-size", "dry-run",  "print-recipe",
    "resume", "attribute", "floor",      "progress", "calibrate",
    NULL};
/* Of seal: how the checkpoint is opened, and -f. */
static const char *const of_seal[] = {"tokenizer", "config",   "rope-theta",
                                      "norm-eps",  "no-mmap",  "threads",
                                      "force",     NULL};

static bool
is_in(const char *const *names, const char *name)
{
    for (; *names != NULL; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

static bool
is_own(const char *name)
{
    for (const struct option *o = options; o->name != NULL; o++)
        if (strcmp(o->name, name) == 0)
            return true;
    return false;
}

/* ---- Words of the shell ---- */

static bool
is_plain(const char *text)
{
    return text[0] != '\0' && text[strspn(text,
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        "_-+=./:,@%")] == '\0';
}

/* As one word, whatever stands in it. */
static void
print_word(const char *text)
{
    if (is_plain(text)) {
        fputs(text, stdout);
        return;
    }
    putchar('\'');
    for (; *text != '\0'; text++)
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*text);
    putchar('\'');
}

static void
print_option(const struct option *option, const char *value)
{
    printf(" --%s", option->name);
    if (value != NULL) {
        putchar(' ');
        print_word(value);
    }
}

/* A path that begins with a dash is no option. */
static void
print_path(const char *path)
{
    putchar(' ');
    if (path[0] == '-')
        fputs("./", stdout);
    print_word(path);
}

/* Options of the command that are (or are not) in the list. */
static void
print_options(const struct arguments *arguments, const char *const *names,
              bool is_wanted)
{
    for (int i = 0; i < arguments->n_given; i++) {
        const struct option *option = arguments->given[i].option;
        if (!is_own(option->name) &&
            is_in(names, option->name) == is_wanted)
            print_option(option, arguments->given[i].value);
    }
}

/* ---- What can be said before ---- */

struct jobs {
    const struct arguments *arguments;
    bool converts;
    long n;
    const char *folder; /* of the set, or of the parts */
    uint64_t rate;
};

static bool
check_choices(const struct arguments *arguments)
{
    const struct choice *choice = arguments->command->choices;
    const char *value;

    for (; choice != NULL && choice->option != NULL; choice++)
        if (!option_choice(arguments, choice->option, &value))
            return false;
    return true;
}

static const char *
why_refused(const char *name)
{
    if (strcmp(name, "attribute") == 0 || strcmp(name, "floor") == 0)
        return "parts cannot measure that";
    if (strcmp(name, "calibrate") == 0)
        return "what a layer becomes depends on all before it, so one machine "
               "does it";
    return "the script says what the parts do";
}

/* A script has lines; a control character would be none of its words. */
static bool
check_word(const struct arguments *arguments, const char *text)
{
    for (const char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' || *p == 127) {
            usage_error(arguments->command,
                        "'%s' has a control character, which has no place in "
                        "a script",
                        text);
            return false;
        }
    return true;
}

static bool
check_words(const struct arguments *arguments, bool converts)
{
    for (int i = 0; i < arguments->n_given; i++) {
        const char *name = arguments->given[i].option->name;
        const char *value = arguments->given[i].value;
        bool is_data = strcmp(name, "json") == 0 || strcmp(name, "yaml") == 0;
        if (is_in(refused, name) || (converts && is_data)) {
            usage_error(arguments->command,
                        "--%s does not go with jobs: %s", name,
                        why_refused(name));
            return false;
        }
        if (value != NULL && !check_word(arguments, value))
            return false;
        if (strcmp(name, "text") == 0 && strcmp(value, "-") == 0) {
            usage_error(arguments->command,
                        "--text cannot be standard input of many machines");
            return false;
        }
    }
    for (int i = 0; i < arguments->n_operands; i++)
        if (strcmp(arguments->operands[i], "-") == 0) {
            usage_error(arguments->command,
                        "'-' cannot be standard input of many machines");
            return false;
        } else if (!check_word(arguments, arguments->operands[i])) {
            return false;
        }
    return true;
}

/* ---- Arithmetic ---- */

/* What two busy cores exceed (lmquant-cluster(7)); and a guess of what a file
 * system that is shared gives to each. */
#define CONVERT_RATE 170000000.0
#define VALIDATE_RATE 200000000.0

static void
print_hours(double seconds)
{
    if (seconds < 5400)
        printf("%.1f minutes", seconds / 60);
    else
        printf("%.1f hours", seconds / 3600);
}

static double
bits_of(const struct arguments *arguments)
{
    const char *encoding = option_text(arguments, "encoding");
    const char *group = option_text(arguments, "group-size");
    const char *scales = option_text(arguments, "scales");
    double bits = encoding == NULL ? 8 : atof(encoding + 1);
    double scale = scales != NULL && strcmp(scales, "f32") == 0 ? 32 : 16;

    return bits + scale / (group == NULL ? 64 : atof(group));
}

static void
print_conversion(const struct jobs *jobs, double bytes, double parameters)
{
    double written = parameters * bits_of(jobs->arguments) / 8;
    double n = (double)jobs->n;
    double rate = jobs->rate > 0 ? (double)jobs->rate : CONVERT_RATE;
    char a[TEXT_SIZE], b[TEXT_SIZE];

    printf("# all: reads %s, writes about %s\n", format_bytes(bytes, a),
           format_bytes(written, b));
    printf("# each of %ld: reads %s, writes about %s, in about ", jobs->n,
           format_bytes(bytes / n, a), format_bytes(written / n, b));
    print_hours(bytes / n / rate);
    printf(" (%s/s of source)\n", format_bytes(rate, a));
    printf("# disk: about %s beside the source; memory: below 1 GB each, "
           "whatever the model\n",
           format_bytes(written, a));
    puts("# lmquant convert --dry-run says the exact sizes");
}

static void
print_validation_costs(const struct jobs *jobs, double bytes)
{
    double rate = jobs->rate > 0 ? (double)jobs->rate : VALIDATE_RATE;
    char a[TEXT_SIZE], b[TEXT_SIZE];

    printf("# each of %ld reads the reference, %s, once for up to 16 windows "
           "of its own,\n# and each model as often; reading alone takes "
           "about ",
           jobs->n, format_bytes(bytes, a));
    print_hours(bytes / rate);
    printf(" a time (%s/s)\n", format_bytes(rate, b));
    puts("# memory: half of what is free of each machine, or --memory; disk: "
         "33 bytes for a\n# token and a model");
}

static enum lmq_status
print_arithmetic(const struct jobs *jobs, struct lmq_error *err)
{
    struct lmq_open_options open;
    struct lmq_checkpoint *checkpoint;
    struct lmq_report *report = NULL;

    if (!open_options(jobs->arguments, &open))
        return LMQ_ERR_ARG;
    enum lmq_status status = lmq_checkpoint_open(
        jobs->arguments->operands[1], &open, &checkpoint, err);
    if (status != LMQ_OK)
        return status;
    status = lmq_inspect(checkpoint, NULL, &report, err);
    lmq_checkpoint_close(checkpoint);
    if (status != LMQ_OK)
        return status;
    double bytes = lmq_report_number(report, "bytes");
    double parameters = lmq_report_number(report, "parameters");
    puts("#!/bin/sh");
    printf("# lmquant %s, jobs: %s on %ld machines with one file system.\n"
           "# Keep it as a file, and run that: sh FILE\n#\n",
           lmq_version(), jobs->arguments->operands[0], jobs->n);
    if (jobs->converts)
        print_conversion(jobs, bytes, parameters);
    else
        print_validation_costs(jobs, bytes);
    lmq_report_free(report);
    return LMQ_OK;
}

/* ---- The script ---- */

static void
print_part(const struct jobs *jobs)
{
    const struct arguments *arguments = jobs->arguments;

    if (jobs->converts) {
        static const char *const none[] = {NULL};
        printf("    exec lmquant convert --part \"$i/%ld\"", jobs->n);
        print_options(arguments, none, false);
    } else {
        printf("    exec lmquant validate --part \"$i/%ld\" --force --report ",
               jobs->n);
        print_word(jobs->folder);
        fputs("/part-\"$i\".json", stdout);
        for (int i = 0; i < arguments->n_given; i++) {
            const struct option *option = arguments->given[i].option;
            if (!is_own(option->name) && !is_in(of_merge, option->name) &&
                strcmp(option->name, "force") != 0)
                print_option(option, arguments->given[i].value);
        }
    }
    for (int i = 1; i < arguments->n_operands; i++)
        print_path(arguments->operands[i]);
    puts(" ;;");
}

static void
print_last(const struct jobs *jobs)
{
    if (jobs->converts) {
        fputs("    exec lmquant seal", stdout);
        print_options(jobs->arguments, of_seal, true);
        print_path(jobs->folder);
    } else {
        fputs("    exec lmquant merge", stdout);
        print_options(jobs->arguments, of_merge, true);
        if (has_option(jobs->arguments, "force"))
            fputs(" --force", stdout);
        print_path(jobs->folder);
        fputs("/part-*.json", stdout);
    }
    puts(" ;;");
}

static void
print_submission(const struct jobs *jobs)
{
    const struct arguments *arguments = jobs->arguments;
    const char *name = arguments->operands[0];

    fputs("submit() {\n    sbatch --parsable --nodes=1 --ntasks=1 --requeue",
          stdout);
    if (option_text(arguments, "threads") != NULL)
        printf(" --cpus-per-task=%s", option_text(arguments, "threads"));
    for (int i = 0; i < arguments->n_given; i++)
        if (strcmp(arguments->given[i].option->name, "sbatch") == 0) {
            putchar(' ');
            print_word(arguments->given[i].value);
        }
    puts(" \"$@\"\n}");
    printf("array=$(submit --job-name=lmquant-%s --array=1-%ld \"$0\" part)\n"
           "array=${array%%%%;*}\n"
           "last=$(submit --job-name=lmquant-%s-last \\\n"
           "    --dependency=afterok:\"$array\" --kill-on-invalid-dep=yes "
           "\"$0\" last)\n"
           "echo \"$array, and then ${last%%%%;*}\"\n",
           name, jobs->n, name);
}

static void
print_script(const struct jobs *jobs)
{
    bool is_parallel = has_option(jobs->arguments, "parallel");

    puts("set -eu");
    printf("i=%s\n", is_parallel ? "${2-}" : "${SLURM_ARRAY_TASK_ID-}");
    puts("case ${1-} in\npart)");
    print_part(jobs);
    puts("last)");
    print_last(jobs);
    puts("esac");
    fputs("mkdir -p", stdout);
    print_path(jobs->folder);
    putchar('\n');
    if (is_parallel)
        printf("seq %ld | parallel -q --jobs 1 --halt soon,fail=1 sh \"$0\" "
               "part\nsh \"$0\" last\n",
               jobs->n);
    else
        print_submission(jobs);
}

static int
print_jobs(struct jobs *jobs)
{
    struct lmq_error err = {0};
    enum lmq_status status = print_arithmetic(jobs, &err);

    if (status == LMQ_ERR_ARG && err.message[0] == '\0')
        return EXIT_USAGE;
    if (status != LMQ_OK)
        return report_error(&err);
    print_script(jobs);
    return EXIT_DONE;
}

static int
run(const struct arguments *arguments)
{
    const char *name = arguments->operands[0];
    struct jobs jobs = {.arguments = arguments,
                        .converts = strcmp(name, "convert") == 0};
    char *folder;

    if (arguments->command->also == NULL)
        return usage_error(arguments->command,
                           "'%s' is neither convert nor validate", name);
    if (option_text(arguments, "nodes") == NULL)
        return usage_error(arguments->command,
                           "--nodes N says how many machines there are");
    if (!option_integer(arguments, "nodes", 1, MAX_PARTS, &jobs.n) ||
        !option_size(arguments, "rate", 1000, &jobs.rate) ||
        !check_choices(arguments) || !check_words(arguments, jobs.converts))
        return EXIT_USAGE;
    if (jobs.converts && !check_output_name(arguments->operands[2], ".lmq"))
        return EXIT_USAGE;
    jobs.folder = option_text(arguments, "parts-folder");
    folder = jobs.converts ? output_folder(arguments->operands[2]) : NULL;
    if (jobs.converts && folder == NULL) {
        print_error("out of memory");
        return EXIT_SYSTEM;
    }
    if (jobs.converts)
        jobs.folder = folder;
    else if (jobs.folder == NULL)
        jobs.folder = "lmquant-parts";
    int code = print_jobs(&jobs);
    free(folder);
    return code;
}

const struct command command_jobs = {
    .name = "jobs",
    .summary = "print a script that has many machines do a command",
    .operands = "convert|validate ARGUMENTS...",
    .about =
        "Prints a script of a Slurm job array, or for GNU parallel, that does "
        "what\n'lmquant convert ARGUMENTS' or 'lmquant validate ARGUMENTS' "
        "would, in N parts\non as many machines with one file system, and the "
        "last step behind them.\nAll options of that command may be given "
        "too. Nothing is run.",
    .least = 2,
    .most = MAX_OPERANDS,
    .options = options,
    .run = run,
};

bool
take_jobs(int argc, char **argv, struct command *jobs)
{
    static const struct command *const known[] = {&command_convert,
                                                  &command_validate};

    for (int i = 1; i < argc; i++)
        for (size_t j = 0; j < 2; j++) {
            if (strcmp(argv[i], known[j]->name) != 0)
                continue;
            *jobs = command_jobs;
            jobs->operands = known[j]->operands;
            jobs->least = known[j]->least + 1;
            jobs->most = known[j]->most;
            if (jobs->most < MAX_OPERANDS)
                jobs->most++;
            jobs->common = known[j]->common;
            jobs->also = known[j]->options;
            jobs->choices = known[j]->choices;
            return true;
        }
    return false;
}
