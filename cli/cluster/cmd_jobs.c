/*
 * cmd_jobs.c - lmquant jobs: a script that has many machines do the work of
 * one command.
 *
 * The script is for reading too, so it says what each machine reads and
 * writes. Nothing is run from here.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"

static const struct option options[] = {
    {0, "nodes", "N", "how many parts, a machine each (needed)"},
    {0, "parallel", NULL, "a script for GNU parallel in place of Slurm"},
    {0, "sbatch", "OPTION",
     "an option of sbatch for all jobs, as in\n"
     "'--partition=cpu'; repeatable"},
    {0, "parts-folder", "FOLDER",
     "of validate and plan: where the parts come to\n"
     "(lmquant-parts, lmquant-plan-parts)"},
    {0, "rate", "SIZE",
     "of the arithmetic: bytes of the source that a machine\n"
     "converts, or else reads, per second"},
    {0, NULL, NULL, NULL},
};

/* ---- Which words go where ---- */

/* Of validate, what the last step is told. */
static const char *const of_merge[] = {"report", "gate",  "baseline",
                                       "markdown", "json", "yaml", NULL};
/* And of plan. */
static const char *const of_choice[] = {"target-size", "target-bits",
                                        "target-kld",  "output",
                                        "report",      "json",
                                        "yaml",        NULL};
/* What the parts decide themselves, or cannot have. */
static const char *const refused[] = {
    "part",   "parts",     "shard-size", "dry-run",  "print-recipe",
    "resume", "attribute", "floor",      "progress", NULL};
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
    const struct task *task;
    long n;
    const char *folder; /* of the set, or of the parts */
    uint64_t rate;
};

/* One part after the other: each calibrates behind what is written. */
static bool
is_chain(const struct jobs *jobs)
{
    return has_option(jobs->arguments, "calibrate") ||
           has_option(jobs->arguments, "own-text");
}

static const char *
why_refused(const char *name)
{
    if (strcmp(name, "attribute") == 0 || strcmp(name, "floor") == 0)
        return "parts cannot measure that";
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
        if (strcmp(name, "sbatch") == 0 &&
            (value[0] != '-' || strlen(value) < 3)) {
            usage_error(arguments->command,
                        "--sbatch is '%s', expected an option of sbatch as "
                        "--partition=cpu: anything else is a script to it",
                        value);
            return false;
        }
        if ((strcmp(name, "text") == 0 || strcmp(name, "calibrate") == 0) &&
            strcmp(value, "-") == 0) {
            usage_error(arguments->command,
                        "--%s cannot be standard input of many machines",
                        name);
            return false;
        }
    }
    for (int i = 0; i < arguments->n_operands; i++)
        if (!check_word(arguments, arguments->operands[i]))
            return false;
    return true;
}

/* Each part would refuse at once what the command does. Its arguments stand one
 * further here; and those of a plan are parts, which the script makes. */
static int
check_command(const struct arguments *arguments, const struct command *command)
{
    struct arguments own = *arguments;

    if (command == &command_plan && arguments->n_operands > 2)
        return usage_error(arguments->command,
                           "'%s' is not for jobs: the script makes the parts",
                           arguments->operands[2]);
    own.n_operands--;
    memmove(own.operands, own.operands + 1,
            (size_t)own.n_operands * sizeof(*own.operands));
    return command->check(&own);
}

/* ---- Arithmetic ---- */

/* What two busy cores exceed (lmquant-cluster(7)); and a guess of what a file
 * system that is shared gives to each. */
#define CONVERT_RATE 170000000.0
#define READING_RATE 200000000.0

static void
print_hours(double seconds)
{
    if (seconds < 90)
        printf("%.0f s", seconds + 0.5);
    else if (seconds < 5400)
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
print_conversion_costs(const struct jobs *jobs, double bytes, double parameters)
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
    printf("\n# (%s/s of source)\n", format_bytes(rate, a));
    printf("# disk: about %s beside the source; memory: below 1 GB each\n",
           format_bytes(written, a));
    puts("# lmquant convert --dry-run says the exact sizes");
    if (is_chain(jobs))
        puts("#\n# calibrating comes to that, and memory for it: for each part "
             "the text goes\n# through all layers up to its own. So the parts "
             "run one after the other, each\n# behind what those before it "
             "have written. mpirun shares it out\n# (lmquant-cluster(7))");
}

static void
print_validation_costs(const struct jobs *jobs, double bytes, double parameters)
{
    (void)parameters;
    double rate = jobs->rate > 0 ? (double)jobs->rate : READING_RATE;
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

static void
print_planning_costs(const struct jobs *jobs, double bytes, double parameters)
{
    double rate = jobs->rate > 0 ? (double)jobs->rate : READING_RATE;
    char a[TEXT_SIZE], b[TEXT_SIZE];

    (void)parameters;
    printf("# each of %ld measures its share of the matrices and encodings "
           "over 2,048 tokens;\n# for as many at a time as memory has room "
           "for it reads the checkpoint, %s,\n# once, which takes about ",
           jobs->n, format_bytes(bytes, a));
    print_hours(bytes / rate);
    printf(" (%s/s)\n", format_bytes(rate, b));
    puts("# the last step measures the choice alone, over --max-tokens "
         "(16,384)");
}

/* ---- The script ---- */

static void
print_operands(const struct arguments *arguments)
{
    for (int i = 1; i < arguments->n_operands; i++)
        print_path(arguments->operands[i]);
}

static void
print_conversion_part(const struct jobs *jobs)
{
    static const char *const none[] = {NULL};

    printf("lmquant convert --part \"$i/%ld\"", jobs->n);
    print_options(jobs->arguments, none, false);
}

/* Into the folder, whatever is there; without what the last step is told. */
static void
print_measuring(const struct jobs *jobs, const char *output,
                const char *const *of_last)
{
    const struct arguments *arguments = jobs->arguments;

    printf("lmquant %s --part \"$i/%ld\" --force --%s ",
           arguments->operands[0], jobs->n, output);
    print_word(jobs->folder);
    fputs("/part-\"$i\".json", stdout);
    for (int i = 0; i < arguments->n_given; i++) {
        const struct option *option = arguments->given[i].option;
        if (!is_own(option->name) && !is_in(of_last, option->name) &&
            strcmp(option->name, "force") != 0)
            print_option(option, arguments->given[i].value);
    }
}

static void
print_validation_part(const struct jobs *jobs)
{
    print_measuring(jobs, "report", of_merge);
}

static void
print_plan_part(const struct jobs *jobs)
{
    const struct arguments *arguments = jobs->arguments;
    bool is_data =
        has_option(arguments, "json") || has_option(arguments, "yaml");

    print_measuring(jobs, "output", of_choice);
    if (is_data && !has_option(arguments, "quiet"))
        fputs(" --quiet", stdout); /* what is printed is the choice alone */
}

static void
print_seal(const struct jobs *jobs)
{
    fputs("lmquant seal", stdout);
    print_options(jobs->arguments, of_seal, true);
    print_path(jobs->folder);
}

static void
print_merge(const struct jobs *jobs)
{
    fputs("lmquant merge", stdout);
    print_options(jobs->arguments, of_merge, true);
    if (has_option(jobs->arguments, "force"))
        fputs(" --force", stdout);
    print_path(jobs->folder);
    fputs("/part-*.json", stdout);
}

static void
print_choice(const struct jobs *jobs)
{
    static const char *const none[] = {NULL};

    fputs("lmquant plan", stdout);
    print_options(jobs->arguments, none, false);
    print_operands(jobs->arguments);
    print_path(jobs->folder);
    fputs("/part-*.json", stdout);
}

static const struct task {
    const struct command *command;
    const char *operands; /* of jobs */
    const char *folder;   /* of the parts, unless it is said */
    void (*print_costs)(const struct jobs *jobs, double bytes,
                        double parameters);
    void (*print_part)(const struct jobs *jobs);
    void (*print_last)(const struct jobs *jobs);
} tasks[] = {
    {&command_convert, "convert CHECKPOINT OUTPUT.lmq", NULL,
     print_conversion_costs, print_conversion_part, print_seal},
    {&command_validate, "validate CHECKPOINT MODEL [TEXT...]", "lmquant-parts",
     print_validation_costs, print_validation_part, print_merge},
    {&command_plan, "plan CHECKPOINT", "lmquant-plan-parts",
     print_planning_costs, print_plan_part, print_choice},
};

#define N_TASKS (sizeof(tasks) / sizeof(tasks[0]))

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
    jobs->task->print_costs(jobs, bytes, parameters);
    lmq_report_free(report);
    return LMQ_OK;
}

static void
print_submission(const struct jobs *jobs)
{
    const struct arguments *arguments = jobs->arguments;
    const char *name = arguments->operands[0];

    fputs("submit() {\n    sbatch --parsable --nodes=1 --ntasks=1 --requeue",
          stdout);
    if (has_option(arguments, "threads")) {
        fputs(" --cpus-per-task=", stdout);
        print_word(option_text(arguments, "threads"));
    }
    for (int i = 0; i < arguments->n_given; i++)
        if (strcmp(arguments->given[i].option->name, "sbatch") == 0) {
            putchar(' ');
            print_word(arguments->given[i].value);
        }
    puts(" \"$@\"\n}");
    printf("array=$(submit --job-name=lmquant-%s --array=1-%ld%s \"$0\" "
           "part)\n"
           "array=${array%%%%;*}\n"
           "last=$(submit --job-name=lmquant-%s-last \\\n"
           "    --dependency=afterok:\"$array\" --kill-on-invalid-dep=yes "
           "\"$0\" last)\n"
           "echo \"$array, and then ${last%%%%;*}\"\n",
           name, jobs->n, is_chain(jobs) ? "%1" : "", name);
}

static void
print_script(const struct jobs *jobs)
{
    bool is_parallel = has_option(jobs->arguments, "parallel");

    puts("set -eu");
    printf("i=%s\n", is_parallel ? "${2-}" : "${SLURM_ARRAY_TASK_ID-}");
    fputs("case ${1-} in\npart)\n    exec ", stdout);
    jobs->task->print_part(jobs);
    print_operands(jobs->arguments);
    fputs(" ;;\nlast)\n    exec ", stdout);
    jobs->task->print_last(jobs);
    puts(" ;;\nesac");
    fputs("mkdir -p", stdout);
    print_path(jobs->folder);
    putchar('\n');
    if (is_parallel && is_chain(jobs))
        printf("for i in $(seq %ld); do\n    sh \"$0\" part \"$i\"\ndone\n"
               "sh \"$0\" last\n",
               jobs->n);
    else if (is_parallel)
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

/* Every machine will read it, from the same file system. */
static bool
is_readable(const char *path)
{
    if (access(path, R_OK) == 0)
        return true;
    print_error("%s: cannot open: %s", path, strerror(errno));
    return false;
}

static const struct task *
find_task(const char *name)
{
    for (size_t i = 0; i < N_TASKS; i++)
        if (strcmp(tasks[i].command->name, name) == 0)
            return &tasks[i];
    return NULL;
}

/* The files that options name. */
static bool
are_readable(const struct arguments *arguments)
{
    static const char *const names[] = {"text",   "tokens",   "task",
                                        "recipe", "baseline", "calibrate"};
    const char *paths[MAX_OCCURRENCES];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        int n = option_texts(arguments, names[i], paths, MAX_OCCURRENCES);
        for (int j = 0; j < n; j++)
            if (!is_readable(paths[j]))
                return false;
    }
    return true;
}

/* The text and the models of a validation; its reference will be opened, as
 * that of others is. */
static bool
are_operands_readable(const struct arguments *arguments)
{
    for (int i = 2; i < arguments->n_operands; i++)
        if (!is_readable(arguments->operands[i]))
            return false;
    return true;
}

/* What the last step writes, when all the others are done. */
static bool
are_outputs_free(const struct arguments *arguments)
{
    static const char *const names[] = {"output", "report"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *path = option_text(arguments, names[i]);
        if (path == NULL || is_page_output(path) || access(path, F_OK) != 0)
            continue;
        struct lmq_error err = {.status = LMQ_ERR_IO,
                                .message = "exists already",
                                .hint = ".replaces replaces it"};
        name_file(&err, path);
        report_error(&err);
        return false;
    }
    return true;
}

/* What would stop the parts or the last step, of what the system has. */
static bool
check_files(const struct arguments *arguments, const struct command *command)
{
    return (command != &command_validate || are_operands_readable(arguments)) &&
           are_readable(arguments) &&
           (has_option(arguments, "force") || are_outputs_free(arguments));
}

static int
run(const struct arguments *arguments)
{
    struct jobs jobs = {.arguments = arguments,
                        .task = find_task(arguments->operands[0])};
    char *folder = NULL;

    if (arguments->command->also == NULL || jobs.task == NULL)
        return usage_error(arguments->command,
                           "'%s' is none of convert, validate and plan",
                           arguments->operands[0]);
    const struct command *command = jobs.task->command;
    bool converts = command == &command_convert;
    if (option_text(arguments, "nodes") == NULL)
        return usage_error(arguments->command,
                           "--nodes N says how many machines there are");
    if (!option_integer(arguments, "nodes", 1, MAX_PARTS - 1, &jobs.n) ||
        !option_size(arguments, "rate", 1000, &jobs.rate) ||
        !check_words(arguments, converts))
        return EXIT_USAGE;
    if (converts && has_option(arguments, "parts-folder"))
        return usage_error(arguments->command,
                           "--parts-folder is of validate and plan: the parts "
                           "of a conversion come to where the set is");
    int code = check_command(arguments, command);
    if (code != EXIT_DONE)
        return code;
    if (!check_files(arguments, command))
        return EXIT_SYSTEM;
    jobs.folder = option_text(arguments, "parts-folder");
    if (converts) {
        folder = output_folder(arguments->operands[2]);
        jobs.folder = folder;
        if (folder == NULL) {
            print_error("out of memory");
            return EXIT_SYSTEM;
        }
    } else if (jobs.folder == NULL) {
        jobs.folder = jobs.task->folder;
    }
    code = print_jobs(&jobs);
    free(folder);
    return code;
}

const struct command command_jobs = {
    .name = "jobs",
    .summary = "print a script that has many machines do a command",
    .operands = "convert|validate|plan ARGUMENTS...",
    .about =
        "Prints a script of a Slurm job array, or for GNU parallel, that does "
        "what\n'lmquant convert ARGUMENTS', or validate, or plan, would, in N "
        "parts on as many\nmachines with one file system, and the last step "
        "behind them. All options of\nthat command may be given too. Nothing "
        "is run.",
    .least = 2,
    .most = MAX_OPERANDS,
    .options = options,
    .run = run,
};

/* What stands behind it may be called as a command is. */
static bool
has_value_behind(const char *word)
{
    for (const struct option *o = options; o->name != NULL; o++)
        if (o->argument != NULL && strncmp(word, "--", 2) == 0 &&
            strcmp(word + 2, o->name) == 0)
            return true;
    return false;
}

bool
take_jobs(int argc, char **argv, struct command *jobs)
{
    for (int i = 1; i < argc; i++) {
        const struct task *task = find_task(argv[i]);
        if (has_value_behind(argv[i]))
            i++;
        if (task == NULL)
            continue;
        *jobs = command_jobs;
        jobs->operands = task->operands;
        jobs->least = task->command->least + 1;
        jobs->most = task->command->most;
        if (jobs->most < MAX_OPERANDS)
            jobs->most++;
        jobs->common = task->command->common;
        jobs->also = task->command->options;
        jobs->choices = task->command->choices;
        return true;
    }
    return false;
}
