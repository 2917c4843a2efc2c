/*
 * containers.c - containers to begin with, and places in their bytes.
 */
#include "config.h"

#include "tests/formats/lmq/containers.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/files/output.h"
#include "formats/lmq/lmq.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"

unsigned char *
small_lmq(const struct lmq_convert_options *options, size_t *n)
{
    struct build_model *model = build_model(&build_small, 7);

    save_folder(model, in_folder("model"), BUILD_F32);
    write_file(in_folder("model/tokenizer.json"),
               "{\"a\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
               54);
    build_free(model);
    lmq_report_free(
        convert(in_folder("model"), in_folder("model.lmq"), options));
    return read_file(in_folder("model.lmq"), n);
}

const char *
save_lmq(const unsigned char *bytes, size_t n)
{
    const char *path = in_folder("changed.lmq");

    write_file(path, bytes, n);
    return path;
}

void
assert_verify_refuses(const char *path, enum lmq_status status,
                      const char *text)
{
    struct lmq_report *report;
    struct lmq_error err;

    ck_assert_int_eq(lmq_verify(path, NULL, NULL, &report, &err), (int)status);
    ck_assert_msg(strstr(err.message, text) != NULL,
                  "'%s' does not speak of '%s'", err.message, text);
    lmq_report_free(report);
}

unsigned char *
find_record(unsigned char *bytes, size_t n, const char *name)
{
    unsigned char *directory =
        bytes + find_lmq_section(bytes, n, LMQ_SECTION_DIRECTORY);
    uint32_t count = lmq_load_u32le(directory);
    unsigned char *names =
        directory + LMQ_DIRECTORY_HEADER + (size_t)count * LMQ_RECORD_SIZE;

    for (uint32_t i = 0; i < count; i++) {
        unsigned char *record =
            directory + LMQ_DIRECTORY_HEADER + (size_t)i * LMQ_RECORD_SIZE;
        if (lmq_load_u32le(record + 4) == strlen(name) &&
            memcmp(names + lmq_load_u32le(record), name, strlen(name)) == 0)
            return record;
    }
    ck_abort_msg("no record %s", name);
    return NULL;
}

unsigned char *
with_unknown_section(size_t *n)
{
    static const unsigned char extra[200] = "something of a later version";
    struct lmq_record *records;
    size_t n_old, n_records, at, size;
    unsigned char *old = small_lmq(NULL, &n_old);
    struct lmq_layout_plan plan = {.alignment = LMQ_ALIGN};
    struct lmq_superblock superblock;
    struct lmq_output *output;
    struct lmq_error err;

    at = find_lmq_section(old, n_old, LMQ_SECTION_DIRECTORY);
    size = (size_t)lmq_load_u64le(
        old + find_lmq_entry(old, n_old, LMQ_SECTION_DIRECTORY) + 16);
    ck_assert_int_eq(lmq_superblock_load(old, n_old, &superblock, &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_directory_load(old + at, size, &superblock, &records,
                                        &n_records, &err),
                     LMQ_OK);
    size_t meta = find_lmq_section(old, n_old, LMQ_SECTION_METADATA);
    const struct lmq_content contents[] = {
        {.type = LMQ_SECTION_METADATA, .name = "", .bytes = old + meta,
         .size = (size_t)lmq_load_u64le(
             old + find_lmq_entry(old, n_old, LMQ_SECTION_METADATA) + 16)},
        {.type = (enum lmq_section_type)99, .name = "later", .bytes = extra,
         .size = sizeof(extra)},
    };
    ck_assert_int_eq(lmq_write_plan(records, n_records, contents, 2, &plan,
                                    &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_output_create(in_folder("changed.lmq"),
                                       plan.file_size, true, NULL, &output,
                                       &err),
                     LMQ_OK);
    /* The tensors keep their places: they come first. */
    ck_assert_int_eq(lmq_output_write(output, 128, old + 128,
                                      (size_t)plan.contents_offset - 128,
                                      &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_write_frame(output, &plan, records, n_records,
                                     contents, 2, &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_output_commit(output, &err), LMQ_OK);
    lmq_records_free(records, n_records);
    free(old);
    return read_file(in_folder("changed.lmq"), n);
}
