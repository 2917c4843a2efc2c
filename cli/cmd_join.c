/*
 * cmd_join.c - lmquant join, and lmquant split, which is the way back.
 */
#include "config.h"

#include <stdio.h>

#include "cli/command.h"

static const struct option options[] = {
    {'f', "force", NULL, "replace an existing output"},
    {0, "json", NULL, "print a report as JSON"},
    {0, "yaml", NULL, "the same as YAML"},
    {0, NULL, NULL, NULL},
};

static void
print_summary(const struct arguments *arguments,
              const struct lmq_report *report, double seconds)
{
    const struct lmq_report *files = lmq_report_at(report, "files");
    double input = lmq_report_number(report, "input_files");
    double bytes = lmq_report_number(report, "output_bytes");
    double tensors = lmq_report_number(report, "tensors");
    char a[TEXT_SIZE];

    printf("%s: %.0f file%s, %.0f tensor%s\n",
           lmq_report_string(report, "input"), input, plural(input), tensors,
           plural(tensors));
    printf("%s\n", lmq_report_string(report, "output"));
    for (size_t i = 0; i < lmq_report_length(files); i++) {
        const struct lmq_report *file = lmq_report_item(files, i);
        if (lmq_report_length(files) == 1 || has_option(arguments, "verbose"))
            printf("  %-44s %10s\n", lmq_report_string(file, "name"),
                   format_bytes(lmq_report_number(file, "bytes"), a));
    }
    printf("  %zu file%s, %s (%.0f bytes), %.2f s\n",
           lmq_report_length(files),
           plural((double)lmq_report_length(files)), format_bytes(bytes, a),
           bytes, seconds);
}

static enum lmq_status
write(struct lmq_checkpoint *checkpoint, const char *output,
      const void *given, const struct lmq_progress *progress,
      struct lmq_report **report, struct lmq_error *err)
{
    return lmq_copy(checkpoint, output, given, progress, report, err);
}

static int
write_copy(const struct arguments *arguments,
           const struct lmq_copy_options *given)
{
    const struct writing writing = {write, given, print_summary};

    return write_model(arguments, &writing);
}

static int
join(const struct arguments *arguments)
{
    struct lmq_copy_options copy = {
        .size = sizeof(copy), .replaces = has_option(arguments, "force")};

    if (!check_output_name(arguments->operands[1], ".lmq") ||
        !thread_option(arguments, &copy.threads))
        return EXIT_USAGE;
    return write_copy(arguments, &copy);
}

const struct command command_join = {
    .name = "join",
    .summary = "one file of a set of files",
    .operands = "SET OUTPUT.lmq",
    .about =
        "Writes the container that SET (its folder, or any member) is, in one "
        "file: byte\nfor byte what convert would have written. Checksums are "
        "compared on the way.",
    .least = 2,
    .most = 2,
    .common = COMMON_WORK,
    .options = options,
    .run = join,
};

/* ---- The way back ---- */

static const struct option split_options[] = {
    {'s', "shard-size", "SIZE",
     "files of at most SIZE bytes each, as in 40G;\n"
     "K, M, G, T are powers of 1000; needed"},
    {'f', "force", NULL, "replace an existing set"},
    {0, "json", NULL, "print a report as JSON"},
    {0, "yaml", NULL, "the same as YAML"},
    {0, NULL, NULL, NULL},
};

static int
split(const struct arguments *arguments)
{
    struct lmq_copy_options copy = {
        .size = sizeof(copy), .replaces = has_option(arguments, "force")};

    if (!option_size(arguments, "shard-size", 1000, &copy.shard_size) ||
        !thread_option(arguments, &copy.threads))
        return EXIT_USAGE;
    if (copy.shard_size == 0)
        return usage_error(arguments->command,
                           "--shard-size says how large files may be");
    return write_copy(arguments, &copy);
}

const struct command command_split = {
    .name = "split",
    .summary = "a set of files of one file",
    .operands = "MODEL.lmq FOLDER",
    .about =
        "Writes the container MODEL.lmq as a set of files into FOLDER, which "
        "must be\nthere: MODEL-00001-of-00003.lmq and so on, byte for byte "
        "what convert would have\nwritten with --shard-size. MODEL.lmq may be "
        "a set itself. Checksums are compared\non the way.",
    .least = 2,
    .most = 2,
    .common = COMMON_WORK,
    .options = split_options,
    .run = split,
};
