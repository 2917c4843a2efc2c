/*
 * cmd_bench.c - lmquant bench.
 */
#include "config.h"

#include <stdio.h>

#include "cli/command.h"

static const struct option options[] = {
    {'p', "prefill", "N", "tokens evaluated at once (512)"},
    {'n', "decode", "N", "tokens evaluated one by one (128)"},
    {'d', "depth", "N", "tokens that stand before those (0)"},
    {'r', "rounds", "N", "the median of so many (3)"},
    {'b', "batch", "N", "tokens in one pass of the prefill (128)"},
    {0, "activations", "MODE", "for int8 weights: q8, q16, f32 (what the\n"
     "container recommends: q16)"},
    {0, "kv", "TYPE", "keys and values: f32 (default), f16,\n"
     "f16-q8, q8"},
    {0, "json", NULL, "print everything as JSON"},
    {0, "yaml", NULL, "print everything as YAML"},
    {0, NULL, NULL, NULL},
};

static void
print_row(const char *name, const struct lmq_report *row, const char *unit,
          const char *key, double limit)
{
    printf("%-8s %5.0f token%-1s %9.1f tokens/s %9.1f %s = %2.0f %% of %.1f\n",
           name, lmq_report_number(row, "tokens"),
           plural(lmq_report_number(row, "tokens")),
           lmq_report_number(row, "tokens_per_s"),
           1e-9 * lmq_report_number(row, key), unit,
           100 * lmq_report_number(row, "fraction"), 1e-9 * limit);
}

static void
print_summary(const struct lmq_report *report)
{
    bool is_float = lmq_report_string(report, "activations")[0] == 'f';
    char text[TEXT_SIZE];

    printf("%s\n", lmq_report_string(report, "path"));
    printf("%s of weights, %s activations, %.0f thread%s, %s\n",
           format_bytes(lmq_report_number(report, "weight_bytes"), text),
           lmq_report_string(report, "activations"),
           lmq_report_number(report, "threads"),
           lmq_report_number(report, "threads") == 1 ? "" : "s",
           lmq_report_string(report, "instruction_set"));
    printf("load     %.3f s\n", lmq_report_number(report, "load_s"));
    print_row("prefill", lmq_report_at(report, "prefill"),
              is_float ? "GFLOP/s" : "Gop/s  ", "ops_per_s",
              lmq_report_number(report, is_float ? "limits.fp32_flops_per_s"
                                                 : "limits.int8_ops_per_s"));
    print_row("decode", lmq_report_at(report, "decode"), "GB/s   ",
              "bytes_per_s",
              lmq_report_number(report, "limits.read_bytes_per_s"));
    printf("%-59s= %2.0f %% of %.1f\n",
           "         as a part of what reading these weights gives",
           100 * lmq_report_number(report, "decode.fraction_of_weights"),
           1e-9 * lmq_report_number(report,
                                    "limits.read_weights_bytes_per_s"));
}

static int
run(const struct arguments *arguments)
{
    struct lmq_open_options open;
    struct lmq_session_options session = {.size = sizeof(session)};
    struct lmq_bench_options bench = {.size = sizeof(bench),
                                      .session = &session};
    struct lmq_checkpoint *checkpoint;
    struct progress_state state;
    struct lmq_progress progress;
    struct lmq_report *report = NULL;
    struct lmq_error err;
    long prefill = 0, decode = 0, depth = 0, rounds = 0, batch = 0;

    if (!option_integer(arguments, "prefill", 1, 1000000, &prefill) ||
        !option_integer(arguments, "decode", 1, 1000000, &decode) ||
        !option_integer(arguments, "depth", 0, 1000000, &depth) ||
        !option_integer(arguments, "rounds", 1, 100, &rounds) ||
        !option_integer(arguments, "batch", 1, 65536, &batch) ||
        !option_choice(arguments, "kv", &session.kv) ||
        !option_choice(arguments, "activations", &session.activations) ||
        !thread_option(arguments, &session.threads) ||
        !open_options(arguments, &open) ||
        !start_progress(arguments, "rounds", &state, &progress))
        return EXIT_USAGE;
    bench.n_prefill = (size_t)prefill;
    bench.n_decode = (size_t)decode;
    bench.depth = (size_t)depth;
    bench.rounds = (int)rounds;
    session.batch = (size_t)batch;
    enum lmq_status status = lmq_checkpoint_open(arguments->operands[0], &open,
                                                 &checkpoint, &err);
    if (status == LMQ_OK)
        status = lmq_bench(checkpoint, &bench, &progress, &report, &err);
    lmq_checkpoint_close(checkpoint);
    end_progress(&state);
    if (status != LMQ_OK)
        return report_error(&err);
    print_notes(arguments, report);
    int code = print_report(arguments, report);
    if (code < 0 && !has_option(arguments, "quiet"))
        print_summary(report);
    lmq_report_free(report);
    return code < 0 ? EXIT_DONE : code;
}

const struct command command_bench = {
    .name = "bench",
    .summary = "measure speed, and what the machine could do",
    .operands = "CHECKPOINT",
    .about =
        "Measures how long loading takes, how fast many tokens at once are "
        "(prefill) and\none by one (decode), and in the same run the "
        "machine's limits: each figure is\nshown as a part of its limit.",
    .least = 1,
    .most = 1,
    .common = COMMON_WORK | COMMON_OPEN,
    .options = options,
    .choices = computing_choices,
    .run = run,
};
