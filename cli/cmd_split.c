/*
 * cmd_split.c - lmquant split.
 */
#include "config.h"

#include "cli/command.h"

static const struct option options[] = {
    {'s', "shard-size", "SIZE",
     "files of at most SIZE bytes each, as in 40G;\n"
     "K, M, G, T are powers of 1000; needed"},
    {'f', "force", NULL, "replace an existing set"},
    {0, "json", NULL, "print a report as JSON"},
    {0, "yaml", NULL, "the same as YAML"},
    {0, NULL, NULL, NULL},
};

static int
run(const struct arguments *arguments)
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
    .options = options,
    .run = run,
};
