/*
 * sets.c - a model in several containers.
 */
#include "config.h"

#include "tests/convert/sets.h"

#include <stdio.h>
#include <sys/stat.h>

#include "tests/build/suite.h"

const struct build_sizes sizes_of_sets = {
    .dim = 24, .hidden = 70, .layers = 2, .heads = 4, .kv_heads = 2,
    .vocab = 71, .context = 64, .is_tied = true,
};

void
save_model(uint64_t seed)
{
    struct build_model *model = build_model(&sizes_of_sets, seed);
    static const char tokenizer[] = "no tokenizer";

    save_folder(model, in_folder("model"), BUILD_F32);
    write_file(in_folder("model/tokenizer.json"), tokenizer,
               sizeof(tokenizer));
    build_free(model);
}

/* "set-00002-of-00003.lmq" in the test's folder. */
const char *
member_path(size_t number, size_t n)
{
    char name[64];

    snprintf(name, sizeof(name), "set-%05zu-of-%05zu.lmq", number, n);
    return in_folder(name);
}

/* How many files there are. */
size_t
convert_set(const struct lmq_convert_options *given)
{
    struct lmq_convert_options options = *given;

    if (options.group_size == 0) /* of sizes that the tests count with */
        options.group_size = 64;
    options.forces_tokenizer = 1;
    struct lmq_report *report =
        convert(in_folder("model"), in_folder("set.lmq"), &options);
    const struct lmq_report *files = lmq_report_at(report, "files");
    size_t n = lmq_report_length(files);
    double total = 0;
    for (size_t i = 0; i < n; i++) {
        const struct lmq_report *file = lmq_report_item(files, i);
        char name[64];
        struct stat info;
        snprintf(name, sizeof(name), "set-%05zu-of-%05zu.lmq", i + 1, n);
        ck_assert_str_eq(lmq_report_string(file, "name"), name);
        double bytes = lmq_report_number(file, "bytes");
        ck_assert(bytes <= (double)options.shard_size);
        total += bytes;
        if (options.is_dry_run)
            continue;
        ck_assert_int_eq(stat(in_folder(name), &info), 0);
        ck_assert((double)info.st_size == bytes);
    }
    ck_assert(lmq_report_number(report, "totals.output_bytes") == total);
    lmq_report_free(report);
    return n;
}

void
convert_one(const struct lmq_convert_options *given)
{
    struct lmq_convert_options options = *given;

    if (options.group_size == 0) /* of sizes that the tests count with */
        options.group_size = 64;
    options.forces_tokenizer = 1;
    options.shard_size = 0;
    lmq_report_free(
        convert(in_folder("model"), in_folder("one.lmq"), &options));
}
