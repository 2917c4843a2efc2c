/*
 * cmd_export.c - lmquant export.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

static const struct option options[] = {
    {'t', "to", "FORMAT",
     "gguf; llama2c; safetensors: floats; or folders\n"
     "with the integers: compressed-tensors, mlx,\n"
     "gptq; needed"},
    {0, "type", "TYPE",
     "of floats in a folder: f32 (default: loses\n"
     "nothing), f16, bf16; gguf: these and q8_0\n"
     "(default: for each tensor the nearest one)"},
    {0, "shard-size", "SIZE",
     "folders: bytes of a file at most, as in 5GB;\n"
     "the default is one file"},
    {'f', "force", NULL, "replace an existing output"},
    {0, "json", NULL, "print a report as JSON"},
    {0, "yaml", NULL, "the same as YAML"},
    {0, NULL, NULL, NULL},
};

/* The ending of what a format is written as. */
static const char *
written_as(const char *format)
{
    if (strcmp(format, "gguf") == 0)
        return ".gguf";
    return strcmp(format, "llama2c") == 0 ? ".bin" : ".safetensors";
}

static const char *const formats[] = {
    "gguf", "llama2c", "safetensors", "compressed-tensors",
    "mlx",  "gptq",    NULL};
static const char *const types[] = {"f32", "f16", "bf16", "q8_0", NULL};
static const struct choice choices[] = {
    {"to", formats}, {"type", types}, {NULL, NULL}};

static bool
parse(const struct arguments *arguments, struct lmq_export_options *export)
{
    *export = (struct lmq_export_options){
        .size = sizeof(*export),
        .replaces = has_option(arguments, "force"),
    };
    if (!option_choice(arguments, "to", &export->to) ||
        !option_choice(arguments, "type", &export->type))
        return false;
    if (export->to == NULL) {
        usage_error(arguments->command,
                    "--to says in which format: gguf, llama2c, "
                    "safetensors, compressed-tensors, mlx or gptq");
        return false;
    }
    if (!check_output_name(arguments->operands[1], written_as(export->to)))
        return false;
    /* The units of disks. */
    return option_size(arguments, "shard-size", 1000, &export->shard_size) &&
           thread_option(arguments, &export->threads);
}

static void
print_summary(const struct arguments *arguments,
              const struct lmq_report *report, double seconds)
{
    const struct lmq_report *files = lmq_report_at(report, "files");
    double group = lmq_report_number(report, "group_size");
    char a[TEXT_SIZE], b[TEXT_SIZE];

    (void)arguments;
    printf("%s (%s, %s parameters)\n", lmq_report_string(report, "input"),
           lmq_report_string(report, "format"),
           format_count(lmq_report_number(report, "parameters"), a));
    printf("%s (%s, %s", lmq_report_string(report, "output"),
           lmq_report_string(report, "to"), lmq_report_string(report, "type"));
    if (group == group)
        printf(" in groups of %.0f", group);
    printf("): %s\n", lmq_report_number(report, "is_lossless") != 0
                          ? "the same weights, bit for bit"
                          : "weights were rounded");
    for (size_t i = 0; i < lmq_report_length(files); i++) {
        const struct lmq_report *file = lmq_report_item(files, i);
        printf("  %-44s %10s\n", lmq_report_string(file, "name"),
               format_bytes(lmq_report_number(file, "bytes"), a));
    }
    printf("  %s -> %s, %.2f s\n",
           format_bytes(lmq_report_number(report, "input_bytes"), a),
           format_bytes(lmq_report_number(report, "output_bytes"), b),
           seconds);
}

static enum lmq_status
write(struct lmq_checkpoint *checkpoint, const char *output,
      const void *given, const struct lmq_progress *progress,
      struct lmq_report **report, struct lmq_error *err)
{
    return lmq_export(checkpoint, output, given, progress, report, err);
}

static int
run(const struct arguments *arguments)
{
    struct lmq_export_options export;
    const struct writing writing = {write, &export, print_summary};

    if (!parse(arguments, &export))
        return EXIT_USAGE;
    return write_model(arguments, &writing);
}

const struct command command_export = {
    .name = "export",
    .summary = "write a model in another tool's format",
    .operands = "CHECKPOINT OUTPUT",
    .about =
        "Writes CHECKPOINT, typically a .lmq container, as a GGUF file, as a "
        "file of\n"
        "llama2.c (version 2, for runq), or as a folder of safetensors: "
        "floats, or the\n"
        "integers and scales as vLLM, MLX or GPTQ's loaders keep them. The "
        "output\n"
        "appears whole or not at all. What the other format cannot say is "
        "refused.",
    .least = 2,
    .most = 2,
    .common = COMMON_WORK | COMMON_OPEN,
    .options = options,
    .choices = choices,
    .run = run,
};
