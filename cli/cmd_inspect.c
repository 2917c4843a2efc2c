/*
 * cmd_inspect.c - lmquant inspect.
 */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

static const struct option options[] = {
    {'t', "tensors", NULL, "list the tensors"},
    {0, "tensor", "NAME", "only this one, by its name here or in the file"},
    {0, "stats", NULL, "with --tensor: read it, show its statistics and a\n"
                       "histogram"},
    {0, "json", NULL, "print everything as JSON"},
    {0, "yaml", NULL, "print everything as YAML"},
    {0, NULL, NULL, NULL},
};

/* ---- The model ---- */

static void
print_number(const struct lmq_report *model, const char *key, const char *text)
{
    double value = lmq_report_number(model, key);

    if (value == value && value != 0)
        printf("  %-16s %.10g\n", text, value);
}

/* Lines of text behind one key. */
static void
print_lines(const struct lmq_report *lines, const char *text)
{
    for (size_t i = 0; i < lmq_report_length(lines); i++)
        printf("  %-16s %s\n", i == 0 ? text : "",
               lmq_report_string(lmq_report_item(lines, i), ""));
}

/* Of a part that no layer has, sizes are 1. */
static bool
is_there(const struct lmq_report *model, const char *key)
{
    if (strstr(key, "head") != NULL)
        key = "head_dim";
    else if (strcmp(key, "hidden_dim") != 0)
        return true;
    return lmq_report_number(model, key) != 1;
}

static void
print_model(const struct lmq_report *report)
{
    static const struct {
        const char *key, *text;
    } rows[] = {
        {"n_layers", "layers"},        {"dim", "dim"},
        {"hidden_dim", "hidden dim"},  {"n_heads", "heads"},
        {"n_kv_heads", "kv heads"},    {"head_dim", "head dim"},
        {"vocab_size", "vocabulary"},  {"context", "context"},
        {"sliding_window", "window"},  {"norm_eps", "norm epsilon"},
    };
    const struct lmq_report *model = lmq_report_at(report, "model");
    const char *head = lmq_report_string(report, "head");
    const char *architecture = lmq_report_string(model, "architecture");
    const char *unsupported = lmq_report_string(model, "unsupported");
    const char *packed = lmq_report_string(report, "packed");

    printf("model: %s\n", architecture[0] == '\0' ? "unknown" : architecture);
    if (packed[0] != '\0')
        printf("  it cannot be converted or run: the weights are packed by\n"
               "  %s\n",
               packed);
    else if (unsupported[0] != '\0')
        printf("  it can be converted, not run: lmquant does not understand\n"
               "  %s\n",
               unsupported);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (is_there(model, rows[i].key))
            print_number(model, rows[i].key, rows[i].text);
    if (lmq_report_at(model, "positions") == NULL) /* they are rotary */
        print_number(model, "rope_theta", "rope theta");
    if (head[0] != '\0')
        printf("  %-16s %s\n", "head",
               strcmp(head, "tied") == 0 ? "the embedding" : "its own");
    print_lines(lmq_report_at(report, "differences"), "unlike a Llama");
    print_lines(lmq_report_at(report, "arrangement"), "in the file");
}

/* ---- For people ---- */

/* A text, or those of a list as far as a line has room. */
static void
print_about(const struct lmq_report *report)
{
    static const struct {
        const char *key, *text;
    } rows[] = {
        {"name", "name"},         {"author", "author"},
        {"organization", ""},     {"license", "license"},
        {"license_name", ""},     {"license_link", ""},
        {"url", "url"},           {"repo_url", ""},
        {"base_model", "base model"}, {"quantized_by", "quantized by"},
    };
    const struct lmq_report *about = lmq_report_at(report, "about");

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct lmq_report *value = lmq_report_at(about, rows[i].key);
        if (value == NULL)
            continue;
        if (lmq_report_kind(value, "") == LMQ_KIND_STRING)
            printf("  %-16s %s\n", rows[i].text,
                   lmq_report_string(value, ""));
        for (size_t j = 0; j < lmq_report_length(value) && j < 4; j++)
            printf("  %-16s %s\n", j == 0 ? rows[i].text : "",
                   lmq_report_string(lmq_report_item(value, j), ""));
    }
}

/* ---- The container ---- */

/* "ffn_down, attn_q (layers 0-3): q8, group 32": so many rules, and so many
 * patterns of each; --verbose has all. */
#define RULES_MOST 16
#define PATTERNS_MOST 4

static void
print_rule(const struct lmq_report *rule, const char *title, bool is_whole)
{
    static const char *const where[] = {"layers", "experts"};
    static const char *const what[] = {"encoding", "group", "scales",
                                       "method", "rotate"};
    const struct lmq_report *patterns = lmq_report_at(rule, "match");
    size_t most = is_whole ? SIZE_MAX : PATTERNS_MOST;
    const char *joint = ":";

    printf("  %-16s", title);
    for (size_t i = 0; i < lmq_report_length(patterns) && i < most; i++)
        printf("%s %s", i == 0 ? "" : ",",
               lmq_report_string(lmq_report_item(patterns, i), ""));
    if (lmq_report_length(patterns) > most)
        printf(", and %zu more", lmq_report_length(patterns) - most);
    for (size_t i = 0; i < 2; i++)
        if (lmq_report_string(rule, where[i])[0] != '\0')
            printf(" (%s %s)", where[i], lmq_report_string(rule, where[i]));
    for (size_t i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
        double number = lmq_report_number(rule, what[i]);
        const char *text = lmq_report_string(rule, what[i]);
        if (number == number)
            printf("%s %s %.0f", joint, what[i], number);
        else if (text[0] != '\0')
            printf("%s %s%s%s", joint, i == 0 ? "" : what[i],
                   i == 0 ? "" : " ", text);
        else
            continue;
        joint = ",";
    }
    putchar('\n');
}

static void
print_recipe(const struct lmq_report *recipe, bool is_whole)
{
    const struct lmq_report *rules = lmq_report_at(recipe, "rules");
    const char *basis = lmq_report_string(recipe, "default.encoding");
    size_t most = is_whole ? SIZE_MAX : RULES_MOST;
    const char *title = "recipe";

    if (recipe != NULL) {
        printf("  %-16s %s where no rule says otherwise\n", title,
               basis[0] != '\0' ? basis : "q8, or as it was,");
        title = "";
    }
    for (size_t i = 0; i < lmq_report_length(rules) && i < most; i++) {
        print_rule(lmq_report_item(rules, i), title, is_whole);
        title = "";
    }
    if (lmq_report_length(rules) > most)
        printf("  %-16s and %zu rules more\n", "",
               lmq_report_length(rules) - most);
}

#define TEXTS_MOST 16

/* The texts, or that there were none but its own; as far as this is what a
 * writer would write: nobody has checked it. */
static void
print_calibration(const struct lmq_report *calibration, bool is_whole)
{
    const struct lmq_report *texts = lmq_report_at(calibration, "texts");
    double tokens = lmq_report_number(calibration, "tokens");
    const char *own = lmq_report_string(calibration, "own_text");
    size_t n = lmq_report_kind(calibration, "texts") == LMQ_KIND_ARRAY
                   ? lmq_report_length(texts)
                   : 0;
    size_t most = is_whole ? SIZE_MAX : TEXTS_MOST;
    char text[TEXT_SIZE];

    if (!(tokens >= 0 && tokens < 1e15))
        return;
    printf("  %-16s %.0f token%s", "learnt from", tokens, plural(tokens));
    if (own[0] != '\0')
        printf(" that it wrote itself (CRC-32 %.8s)", own);
    putchar('\n');
    if (n > most)
        printf("  %-16s of %zu texts, among them\n", "", n);
    for (size_t i = 0; i < n && i < most; i++) {
        const struct lmq_report *one = lmq_report_item(texts, i);
        if (!(lmq_report_number(one, "size") >= 0))
            continue;
        printf("  %-16s %s (%s, CRC-32 %.8s)\n", "",
               lmq_report_string(one, "name"),
               format_bytes(lmq_report_number(one, "size"), text),
               lmq_report_string(one, "crc32"));
    }
}

static void
print_container(const struct lmq_report *report, bool is_whole)
{
    const struct lmq_report *sources =
        lmq_report_at(report, "provenance.sources");
    const char *version = lmq_report_string(report, "format_version");
    const char *rule = lmq_report_string(report, "tie_rule");
    const char *tool = lmq_report_string(report, "provenance.tool");
    char text[TEXT_SIZE];

    if (version[0] == '\0')
        return;
    printf("container: version %s\n", version);
    /* Another writer need not say any of that. */
    if (lmq_report_at(report, "quantization.group_size") != NULL)
        printf("  %-16s groups of %.0f, %s scales, %s, %s%s\n", "quantization",
               lmq_report_number(report, "quantization.group_size"),
               lmq_report_string(report, "quantization.scales"),
               lmq_report_string(report, "quantization.method"),
               lmq_report_string(report, "quantization.layout"),
               lmq_report_number(report, "quantization.rotate") == 1
                   ? ", rotated"
                   : "");
    print_calibration(lmq_report_at(report, "quantization.calibration"),
                      is_whole);
    print_recipe(lmq_report_at(report, "recipe"), is_whole);
    if (rule[0] != '\0')
        printf("  %-16s found by %s\n", "tied head", rule);
    if (tool[0] != '\0')
        printf("  %-16s %s\n", "made by", tool);
    for (size_t i = 0; i < lmq_report_length(sources); i++) {
        const struct lmq_report *source = lmq_report_item(sources, i);
        printf("  %-16s %s (%s, CRC-32 %s)\n", i == 0 ? "made from" : "",
               lmq_report_string(source, "name"),
               format_bytes(lmq_report_number(source, "size"), text),
               lmq_report_string(source, "crc32"));
    }
    if (lmq_report_at(report, "digests") != NULL)
        printf("  %-16s root    %s\n  %-16s content %s\n", "digests",
               lmq_report_string(report, "digests.root"), "",
               lmq_report_string(report, "digests.content"));
}

/* ---- Tensors ---- */

static void
format_shape(const struct lmq_report *shape, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < lmq_report_length(shape) && used < size; i++) {
        int n = snprintf(text + used, size - used, "%s%.0f", i == 0 ? "" : "x",
                         lmq_report_number(lmq_report_item(shape, i), ""));
        used += n > 0 ? (size_t)n : 0;
    }
}

static void
print_tensors(const struct lmq_report *tensors)
{
    char shape[64], bytes[TEXT_SIZE];

    printf("\n%-36s %-15s %-6s %9s %8s\n", "tensor", "shape", "type", "bytes",
           "SNR dB");
    for (size_t i = 0; i < lmq_report_length(tensors); i++) {
        const struct lmq_report *tensor = lmq_report_item(tensors, i);
        const char *alias = lmq_report_string(tensor, "alias_of");
        double snr = lmq_report_number(tensor, "snr_db");
        format_shape(lmq_report_at(tensor, "shape"), shape, sizeof(shape));
        print_name(lmq_report_string(tensor, "name"), 36);
        printf(" %-15s ", shape);
        if (alias[0] != '\0') {
            printf("= %s\n", alias);
            continue;
        }
        printf("%-6s %9s", lmq_report_string(tensor, "type"),
               format_bytes(lmq_report_number(tensor, "bytes"), bytes));
        if (snr == snr)
            printf(" %8.1f", snr);
        putchar('\n');
    }
}

#define BAR_WIDTH 50

static void
print_stats(const struct lmq_report *tensor)
{
    static const char *const keys[] = {"elements", "zeros", "nonfinite", "min",
                                       "max",      "mean",  "rms",
                                       "stddev"};
    const struct lmq_report *stats = lmq_report_at(tensor, "stats");
    const struct lmq_report *bins = lmq_report_at(stats, "histogram");
    size_t n = lmq_report_length(bins);
    double most = 1, rms = lmq_report_number(stats, "rms");

    if (stats == NULL)
        return;
    printf("\n%s\n", lmq_report_string(tensor, "stored_name"));
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        printf("  %-10s %.8g\n", keys[i], lmq_report_number(stats, keys[i]));
    for (size_t i = 0; i < n; i++) {
        double count = lmq_report_number(lmq_report_item(bins, i), "");
        most = count > most ? count : most;
    }
    putchar('\n');
    for (size_t i = 0; i < n; i++) {
        double count = lmq_report_number(lmq_report_item(bins, i), "");
        double middle =
            (((double)i + 0.5) / (double)n * 8 - 4) * rms;
        int width = (int)(count / most * BAR_WIDTH + 0.5);
        printf("%s%10.3g |", i == 0 ? "<=" : i + 1 == n ? ">=" : "  ", middle);
        for (int j = 0; j < width || (j == 0 && count > 0); j++)
            putchar(j < width ? '#' : '.');
        putchar('\n');
    }
}

/* ---- The command ---- */

static void
print_summary(const struct lmq_report *report,
              const struct lmq_tokenizer *tokenizer, bool is_whole)
{
    const struct lmq_report *tensors = lmq_report_at(report, "tensors");
    const struct lmq_report *files = lmq_report_at(report, "tokenizer_files");
    const char *variant = lmq_report_string(report, "variant");
    char a[TEXT_SIZE], b[TEXT_SIZE];

    printf("%s\n", lmq_report_string(report, "path"));
    printf("  %-16s %s%s%s, %.0f file%s, %s\n", "format",
           lmq_report_string(report, "format"), variant[0] == '\0' ? "" : " ",
           variant,
           lmq_report_number(report, "files"),
           lmq_report_number(report, "files") == 1 ? "" : "s",
           format_bytes(lmq_report_number(report, "bytes"), a));
    printf("  %-16s %s in %.0f tensor%s", "parameters",
           format_count(lmq_report_number(report, "parameters"), b),
           lmq_report_number(report, "tensor_count"),
           lmq_report_number(report, "tensor_count") == 1 ? "" : "s");
    if (lmq_report_number(report, "tensor_count") > 0)
        printf(", %.2f bits each",
               lmq_report_number(report, "bits_per_weight"));
    putchar('\n');
    printf("  %-16s", "tokenizer");
    for (size_t i = 0; i < lmq_report_length(files); i++) {
        if (i > 0)
            printf(i % 3 == 0 ? ",\n%18s" : ",", "");
        printf(" %s", lmq_report_string(lmq_report_item(files, i), "name"));
    }
    puts(lmq_report_length(files) == 0 ? " none" : "");
    if (tokenizer != NULL)
        printf("  %-16s %s, %zu tokens\n", "",
               lmq_tokenizer_kind(tokenizer), lmq_tokenizer_size(tokenizer));
    print_about(report);
    print_model(report);
    print_container(report, is_whole);
    if (tensors != NULL)
        print_tensors(tensors);
    if (lmq_report_length(tensors) == 1)
        print_stats(lmq_report_item(tensors, 0));
}

static int
run(const struct arguments *arguments)
{
    struct lmq_open_options open;
    struct lmq_inspect_options inspect = {
        .size = sizeof(inspect),
        .has_tensors = has_option(arguments, "tensors"),
        .tensor = option_text(arguments, "tensor"),
        .has_stats = has_option(arguments, "stats"),
    };
    struct lmq_checkpoint *checkpoint;
    struct lmq_tokenizer *tokenizer = NULL;
    struct lmq_report *report;
    struct lmq_error err;

    if (!open_options(arguments, &open))
        return EXIT_USAGE;
    if (inspect.has_stats && inspect.tensor == NULL)
        return usage_error(arguments->command, "--stats needs --tensor NAME");
    if (lmq_checkpoint_open(arguments->operands[0], &open, &checkpoint,
                            &err) != LMQ_OK)
        return report_error(&err);
    enum lmq_status status = lmq_inspect(checkpoint, &inspect, &report, &err);
    if (status != LMQ_OK) {
        lmq_checkpoint_close(checkpoint);
        return report_error(&err);
    }
    print_notes(arguments, report);
    int code = print_report(arguments, report);
    if (code < 0) {
        code = EXIT_DONE;
        if (lmq_report_length(lmq_report_at(report, "tokenizer_files")) > 0 &&
            !has_option(arguments, "quiet"))
            status = lmq_tokenizer_from_checkpoint(checkpoint, &tokenizer,
                                                   &err);
        if (status == LMQ_ERR_NOMEM || status == LMQ_ERR_IO)
            code = report_error(&err);
        else if (status != LMQ_OK)
            print_note(arguments, "the tokenizer is not understood: %s%s%s",
                       err.path, err.path[0] == '\0' ? "" : ": ",
                       err.message);
        if (code == EXIT_DONE && !has_option(arguments, "quiet"))
            print_summary(report, tokenizer,
                          has_option(arguments, "verbose"));
    }
    lmq_tokenizer_close(tokenizer);
    lmq_report_free(report);
    lmq_checkpoint_close(checkpoint);
    return code;
}

const struct command command_inspect = {
    .name = "inspect",
    .summary = "show what is in a checkpoint of any format",
    .operands = "CHECKPOINT",
    .about = "Shows the format, the model's description, where a container "
             "came from, and\non request the tensors and the statistics of "
             "one.",
    .least = 1,
    .most = 1,
    .common = COMMON_OPEN,
    .only_reads = true,
    .options = options,
    .run = run,
};
