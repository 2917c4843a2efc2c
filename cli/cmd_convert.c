/*
 * cmd_convert.c - lmquant convert.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

static const struct option options[] = {
    {'e', "encoding", "NAME",
     "q8 (default), q6, q5, q4: bits of a weight; with fewer\n"
     "than 8 the embedding and the head get more"},
    {'g', "group-size", "N",
     "weights per scale: 32, 64, 128, 256 (64, or 32 where\n"
     "that takes fewer bytes)"},
    {0, "scales", "TYPE", "f16 (default) or f32"},
    {0, "method", "NAME",
     "search (default: least squares over steps near\n"
     "max/127), absmax (max/127), or with --calibrate\n"
     "gptq (each number makes up for those before it)"},
    {0, "calibrate", "TEXT",
     "round matrices by what this text makes of them, by\n"
     "gptq unless --method or a recipe says otherwise;\n"
     "repeatable"},
    {0, "own-text", NULL,
     "the same by what the model writes itself: no text\n"
     "is needed"},
    {0, "calibrate-tokens", "N", "how much of it (32768)"},
    {'c', "ctx", "N",
     "tokens of a window of it (512, or what the model\n"
     "has room for)"},
    {0, "split-documents", NULL,
     "each paragraph of it (blank lines between) begins\n"
     "anew"},
    {0, "damping", "X", "how little it is believed (0.01)"},
    {0, "mend", "X",
     "how much of what the layers before have missed is\n"
     "made up for, from 0 to 1 (0.4)"},
    {0, "rotate", NULL,
     "turn groups, so that nothing in them stands out:\n"
     "activations of 8 bits lose less"},
    {0, "recipe", "FILE",
     "what becomes of which matrix, lmquant-recipe(5)"},
    {0, "keep", "PATTERN",
     "matrices of such names or roles stay what they are,\n"
     "as in 'output' or 'blk.[0-3].ffn_*'"},
    {0, "set", "PATTERN=TYPE",
     "they become q8, q6, q5, q4, bf16, f16 or f32, perhaps\n"
     "with ,group=N ,scales=TYPE ,method=NAME ,rotate=yes\n"
     "behind it"},
    {0, "print-recipe", NULL,
     "print the recipe that all of this makes, as YAML;\n"
     "write nothing"},
    {0, "layout", "NAME", "order of the values: tiles (default: as the\n"
     "kernels read them) or rows (row after row)"},
    {0, "tie", "HOW", "auto (default): a head that equals the embedding\n"
                      "is stored once; never"},
    {0, "on-nonfinite", "HOW",
     "NaN or infinity: fail (default), or zero to put 0\n"
     "in its place"},
    {0, "shard-size", "SIZE",
     "a set of files of at most SIZE bytes each,\n"
     "OUTPUT-00001-of-00003.lmq and so on; K, M, G, T\nare powers of 1000"},
    {0, "parts", "N", "a set of N files, about as large"},
    {0, "part", "I/N",
     "write only the Ith of N: lmquant seal makes a set\nof all"},
    {'z', "compress", NULL, "deflate the tokenizer"},
    {0, "digests", NULL,
     "add SHA-256 of the tensors, the file and the content"},
    {0, "force-tokenizer", NULL,
     "keep a tokenizer that does not fit the model"},
    {0, "resume", NULL,
     "go on with what was begun and stopped; what this\nrun does can be gone "
     "on with"},
    {'n', "dry-run", NULL,
     "print the plan and the exact size; write nothing"},
    {'f', "force", NULL, "replace an existing output"},
    {0, "json", NULL, "print a report as JSON"},
    {0, "yaml", NULL, "the same as YAML"},
    {0, NULL, NULL, NULL},
};

static const char *const encodings[] = {"q8", "q6", "q5", "q4", NULL};
static const char *const group_sizes[] = {"32", "64", "128", "256", NULL};
static const char *const scales[] = {"f16", "f32", NULL};
static const char *const methods[] = {"search", "absmax", "gptq", NULL};
static const char *const layouts[] = {"tiles", "rows", NULL};
static const char *const ties[] = {"auto", "never", NULL};
static const char *const nonfinite[] = {"fail", "zero", NULL};
static const struct choice choices[] = {
    {"group-size", group_sizes}, {"scales", scales},
    {"method", methods},         {"layout", layouts},
    {"tie", ties},               {"on-nonfinite", nonfinite},
    {"encoding", encodings},     {NULL, NULL},
};

static bool
parse_parts(const struct arguments *arguments,
            struct lmq_convert_options *convert)
{
    long n_parts = 0;
    unsigned n = 0;

    if (!option_integer(arguments, "parts", 1, 99999, &n_parts) ||
        !option_part(arguments, "part", 99999, &convert->part, &n))
        return false;
    if (n > 0 && n_parts > 0 && n_parts != (long)n) {
        usage_error(arguments->command, "--part says %u parts, --parts %ld", n,
                    n_parts);
        return false;
    }
    convert->n_parts = n > 0 ? n : (unsigned)n_parts;
    if (convert->n_parts > 0 && has_option(arguments, "shard-size")) {
        usage_error(arguments->command,
                    "--shard-size and --part%s both say where to cut",
                    n > 0 ? "" : "s");
        return false;
    }
    return true;
}

/* As far as that can be told from the words alone. */
static bool
check_rules(const struct arguments *arguments)
{
    for (int i = 0; i < arguments->n_given; i++) {
        const char *name = arguments->given[i].option->name;
        const char *text = arguments->given[i].value, *expected = NULL;
        if (strcmp(name, "keep") == 0 && text[0] == '\0')
            expected = "a name or a pattern";
        else if (strcmp(name, "keep") == 0 && strchr(text, '=') != NULL)
            expected = "a pattern; --set has other encodings";
        if (strcmp(name, "set") == 0) {
            const char *type = strchr(text, '=');
            if (type == NULL || type == text || type[1] == '\0')
                expected = "PATTERN=TYPE";
        }
        if (expected != NULL) {
            usage_error(arguments->command, "--%s is '%s', expected %s", name,
                        text, expected);
            return false;
        }
    }
    return true;
}

static bool
parse_calibration(const struct arguments *arguments,
                  struct lmq_convert_options *convert, const char **texts)
{
    long tokens = 0, context = 0;

    convert->calibration = texts;
    convert->n_calibration = (size_t)option_texts(arguments, "calibrate",
                                                  texts, MAX_OCCURRENCES);
    convert->writes_text = has_option(arguments, "own-text");
    convert->splits_documents = has_option(arguments, "split-documents");
    if (!option_integer(arguments, "calibrate-tokens", 1, 2000000000,
                        &tokens) ||
        !option_integer(arguments, "ctx", 2, 1 << 28, &context) ||
        !option_real(arguments, "damping", 1e-6, 10, &convert->damping) ||
        !option_real(arguments, "mend", 0, 1, &convert->mend))
        return false;
    if (has_option(arguments, "mend") && convert->mend <= 0)
        convert->mend = -1;
    convert->calibration_tokens = (size_t)tokens;
    convert->context = (size_t)context;
    return true;
}

static bool
parse(const struct arguments *arguments, struct lmq_convert_options *convert,
      const char **texts)
{
    const char *group_size = NULL;

    *convert = (struct lmq_convert_options){
        .size = sizeof(*convert),
        .is_dry_run = has_option(arguments, "dry-run") ||
                      has_option(arguments, "print-recipe"),
        .replaces = has_option(arguments, "force"),
        .is_compressed = has_option(arguments, "compress"),
        .has_digests = has_option(arguments, "digests"),
        .resumes = has_option(arguments, "resume"),
        .forces_tokenizer = has_option(arguments, "force-tokenizer"),
        .recipe = option_text(arguments, "recipe"),
        .rotates = has_option(arguments, "rotate"),
    };
    if (!option_choice(arguments, "encoding", &convert->encoding) ||
        !option_choice(arguments, "group-size", &group_size) ||
        !option_choice(arguments, "scales", &convert->scales) ||
        !option_choice(arguments, "method", &convert->method) ||
        !option_choice(arguments, "layout", &convert->layout) ||
        !option_choice(arguments, "tie", &convert->tie) ||
        !option_choice(arguments, "on-nonfinite", &convert->on_nonfinite) ||
        !option_size(arguments, "shard-size", 1000, &convert->shard_size) ||
        !thread_option(arguments, &convert->threads))
        return false;
    if (!parse_parts(arguments, convert) ||
        !parse_calibration(arguments, convert, texts))
        return false;
    if (group_size != NULL)
        convert->group_size = (unsigned)atoi(group_size);
    return true;
}

/* ---- Rules ---- */

/* --keep and --set in their order: later ones count. */
struct rules {
    const char *texts[MAX_OCCURRENCES];
    char *owned[MAX_OCCURRENCES];
    size_t n;
};

static void
free_rules(struct rules *rules)
{
    for (size_t i = 0; i < rules->n; i++)
        free(rules->owned[i]);
}

static bool
make_rules(const struct arguments *arguments, struct rules *rules)
{
    static const char suffix[] = "=keep";

    *rules = (struct rules){0};
    for (int i = 0; i < arguments->n_given; i++) {
        const char *name = arguments->given[i].option->name;
        const char *value = arguments->given[i].value;
        char *owned = NULL;
        if (strcmp(name, "keep") == 0) {
            size_t n = strlen(value) + sizeof(suffix);
            owned = malloc(n);
            if (owned == NULL)
                return false;
            snprintf(owned, n, "%s%s", value, suffix);
        } else if (strcmp(name, "set") != 0) {
            continue;
        }
        rules->owned[rules->n] = owned;
        rules->texts[rules->n++] = owned == NULL ? value : owned;
    }
    return true;
}

/* ---- All of them ---- */

struct wishes {
    struct lmq_convert_options convert;
    const char *texts[MAX_OCCURRENCES];
    struct rules rules;
};

/* All that is wrong whatever the checkpoint is. The rules are released with
 * free_rules() in any case. */
static int
take_wishes(const struct arguments *arguments, struct wishes *wishes)
{
    struct lmq_open_options open; /* write_model() takes them again */
    struct lmq_error err;

    wishes->rules.n = 0;
    if (!check_output_name(arguments->operands[1], ".lmq") ||
        !parse(arguments, &wishes->convert, wishes->texts) ||
        !check_rules(arguments) || !open_options(arguments, &open))
        return EXIT_USAGE;
    if (!make_rules(arguments, &wishes->rules)) {
        print_error("out of memory");
        return EXIT_SYSTEM;
    }
    wishes->convert.rules = wishes->rules.texts;
    wishes->convert.n_rules = wishes->rules.n;
    return lmq_convert_check(&wishes->convert, &err) == LMQ_OK
               ? EXIT_DONE
               : report_error(&err);
}

static int
check(const struct arguments *arguments)
{
    struct wishes wishes;
    int code = take_wishes(arguments, &wishes);

    free_rules(&wishes.rules);
    return code;
}

/* ---- Output ---- */

/* The matrix that lost most, which is where to look first. */
static void
print_worst(const struct lmq_report *report)
{
    const struct lmq_report *tensors = lmq_report_at(report, "tensors");
    const struct lmq_report *worst = NULL;

    for (size_t i = 0; i < lmq_report_length(tensors); i++) {
        const struct lmq_report *tensor = lmq_report_item(tensors, i);
        double snr = lmq_report_number(tensor, "snr_db");
        if (snr == snr && (worst == NULL ||
                           snr < lmq_report_number(worst, "snr_db")))
            worst = tensor;
    }
    if (worst != NULL)
        printf(", worst %.1f dB (%s)", lmq_report_number(worst, "snr_db"),
               lmq_report_string(worst, "name"));
}

static void
print_tensors(const struct lmq_report *report)
{
    const struct lmq_report *tensors = lmq_report_at(report, "tensors");

    printf("\n%-36s %-5s %-6s %6s %9s %7s\n", "tensor", "from", "to", "bits",
           "max error", "SNR dB");
    for (size_t i = 0; i < lmq_report_length(tensors); i++) {
        const struct lmq_report *tensor = lmq_report_item(tensors, i);
        double snr = lmq_report_number(tensor, "snr_db");
        double bits = lmq_report_number(tensor, "bits_per_weight");
        print_name(lmq_report_string(tensor, "name"), 36);
        double group = lmq_report_number(tensor, "group_size");
        char type[TEXT_SIZE];
        snprintf(type, sizeof(type), group == group ? "%s/%.0f" : "%s",
                 lmq_report_string(tensor, "stored_type"), group);
        printf(" %-5s %-6s", lmq_report_string(tensor, "source_type"), type);
        if (bits == bits)
            printf(" %6.2f", bits);
        if (snr == snr)
            printf(" %9.3g %7.1f", lmq_report_number(tensor, "max_error"),
                   snr);
        putchar('\n');
    }
}

/* " in groups of 64", or of which sizes how many have. */
static void
print_groups(const struct lmq_report *tensors)
{
    static const int sizes[] = {32, 64, 128, 256};
    size_t counts[4] = {0}, n_sizes = 0, n = lmq_report_length(tensors);
    const char *joint = " in groups of ";

    for (size_t i = 0; i < 4; i++) {
        for (size_t j = 0; j < n; j++)
            counts[i] += lmq_report_number(lmq_report_item(tensors, j),
                                           "group_size") == sizes[i];
        n_sizes += counts[i] > 0;
    }
    for (size_t i = 0; i < 4; i++) {
        if (counts[i] == 0)
            continue;
        printf("%s%d", joint, sizes[i]);
        if (n_sizes > 1)
            printf(" (%zu)", counts[i]);
        joint = ", ";
    }
}

/* How many of the kept ones are floats of 16 bits. */
static void
print_halves(const struct lmq_report *tensors)
{
    static const char *const types[] = {"bf16", "f16"};

    for (size_t i = 0; i < 2; i++) {
        size_t n = 0;
        for (size_t j = 0; j < lmq_report_length(tensors); j++)
            n += strcmp(lmq_report_string(lmq_report_item(tensors, j),
                                          "stored_type"),
                        types[i]) == 0;
        if (n > 0)
            printf(" (%zu as %s)", n, types[i]);
    }
}

static void
print_summary(const struct arguments *arguments,
              const struct lmq_report *report, double seconds)
{
    const struct lmq_report *totals = lmq_report_at(report, "totals");
    const char *rule = lmq_report_string(report, "tie.rule");
    double input = lmq_report_number(totals, "input_bytes");
    double output = lmq_report_number(totals, "output_bytes");
    double snr = lmq_report_number(totals, "snr_db");
    bool is_dry = lmq_report_number(report, "dry_run") != 0;
    char a[TEXT_SIZE], b[TEXT_SIZE];

    printf("%s (%s, %s parameters)\n", lmq_report_string(report, "input"),
           lmq_report_string(report, "format"),
           format_count(lmq_report_number(totals, "parameters"), a));
    printf("  %.0f tensor%s: %.0f quantized",
           lmq_report_number(totals, "tensors"),
           plural(lmq_report_number(totals, "tensors")),
           lmq_report_number(totals, "quantized"));
    print_groups(lmq_report_at(report, "tensors"));
    if (lmq_report_number(totals, "as_stored") > 0)
        printf(" (%.0f as they were)", lmq_report_number(totals, "as_stored"));
    printf(", %.0f kept", lmq_report_number(totals, "kept"));
    print_halves(lmq_report_at(report, "tensors"));
    puts(lmq_report_number(totals, "aliases") > 0 ? ", 1 alias" : "");
    if (rule[0] != '\0')
        printf("  the head is the embedding (found by %s)\n", rule);
    if (snr == snr) {
        printf("  signal to noise %.1f dB", snr);
        print_worst(report);
        putchar('\n');
    }
    if (lmq_report_number(totals, "zeroed_elements") > 0)
        printf("  %.0f element%s not finite and became 0\n",
               lmq_report_number(totals, "zeroed_elements"),
               lmq_report_number(totals, "zeroed_elements") == 1 ? " was"
                                                                 : "s were");
    double part = lmq_report_number(report, "part");
    if (part == part) {
        const struct lmq_report *files = lmq_report_at(report, "files");
        const struct lmq_report *own =
            lmq_report_item(files, (size_t)part - 1);
        printf("part %.0f of %zu: %s, %s; lmquant seal makes a set of all\n",
               part, lmq_report_length(files), lmq_report_string(own, "name"),
               format_bytes(lmq_report_number(own, "bytes"), a));
        return;
    }
    size_t n_files = lmq_report_length(lmq_report_at(report, "files"));
    printf("%s", lmq_report_string(report, "output"));
    if (n_files > 1)
        printf(" in %zu files", n_files);
    puts(is_dry ? " (not written: --dry-run)" : "");
    printf("  %s -> %s (%.0f bytes)", format_bytes(input, a),
           format_bytes(output, b), output);
    if (lmq_report_number(totals, "tensors") > 0)
        printf(", %.2f bits per weight",
               lmq_report_number(totals, "bits_per_weight"));
    putchar('\n');
    if (!is_dry)
        printf("  %.2f s, %s of input per second\n", seconds,
               format_bytes(input / seconds, a));
    if (has_option(arguments, "verbose") || is_dry)
        print_tensors(report);
}

static enum lmq_status
write(struct lmq_checkpoint *checkpoint, const char *output,
      const void *given, const struct lmq_progress *progress,
      struct lmq_report **report, struct lmq_error *err)
{
    return lmq_convert(checkpoint, output, given, progress, report, err);
}

static int
convert_all(const struct arguments *arguments,
            struct lmq_convert_options *convert)
{
    const struct writing writing = {write, convert, print_summary};
    struct ranks ranks = {.n = 1};

    if (convert->part == 0 && !convert->is_dry_run &&
        !start_ranks(arguments, &ranks))
        return EXIT_USAGE;
    int code = ranks.n > 1
                   ? convert_by_ranks(arguments, &ranks, convert, &writing)
                   : write_model(arguments, &writing);
    return end_ranks(&ranks, code);
}

static int
run(const struct arguments *arguments)
{
    struct wishes wishes;
    int code = take_wishes(arguments, &wishes);

    if (code == EXIT_DONE)
        code = convert_all(arguments, &wishes.convert);
    free_rules(&wishes.rules);
    return code;
}

const struct command command_convert = {
    .name = "convert",
    .summary = "quantize a checkpoint into a .lmq container",
    .operands = "CHECKPOINT OUTPUT.lmq",
    .about =
        "Quantizes the matrices of CHECKPOINT (a file or folder, recognised "
        "by content)\n"
        "to 8 bits or fewer with a scale per group, keeps the rest as "
        "float32, and\nwrites one "
        "container with all that running it needs. What is quantized "
        "already\nin groups that a container can have (.lmq, GPTQ, AWQ, Q8_0 "
        "and Q4_0 of GGUF)\nkeeps its integers and scales, unless -e, -g, "
        "--scales or --rotate asks for\nothers. The output appears whole or "
        "not at all. The memory needed does not grow\nwith the model.",
    .least = 2,
    .most = 2,
    .common = COMMON_WORK | COMMON_OPEN,
    .options = options,
    .choices = choices,
    .check = check,
    .run = run,
};
