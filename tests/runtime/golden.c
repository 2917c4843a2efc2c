/*
 * golden.c - digests of what lmquant makes of small models: the container, and
 * the logits in each arithmetic.
 *
 * `golden FILE` writes a line for each model; tests/runtime/golden.txt has the
 * lines as they must be, yesterday and on every machine. `make golden-file`
 * writes it anew.
 */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/files/file.h"
#include "lmquant.h"
#include "tests/build/suite.h"
#include "tests/families/family.h"
#include "tests/families/variants.h"

#define MOST_TOKENS 140

static FILE *out;

/* ---- Digests ---- */

/* Of the values, not of the bytes that this machine keeps them in. */
static uint32_t
digest_floats(uint32_t crc, const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char bytes[4];
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof(bits));
        lmq_store_u32le(bytes, bits);
        crc = lmq_crc32(crc, bytes, sizeof(bytes));
    }
    return crc;
}

static uint32_t
digest_file(const char *path)
{
    size_t n;
    unsigned char *bytes = read_file(path, &n);
    uint32_t crc = lmq_crc32(0, bytes, n);

    free(bytes);
    return crc;
}

static uint32_t
digest_logits(const char *path, const struct lmq_session_options *how,
              size_t n_tokens, size_t context)
{
    struct lmq_session_options options = *how;
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);
    struct lmq_model *model;
    struct lmq_session *session;
    struct lmq_error err;
    struct random random = {17};
    int32_t tokens[MOST_TOKENS];
    uint32_t crc = 0;

    ck_assert_msg(lmq_model_open(checkpoint, &model, &err) == LMQ_OK, "%s: %s",
                  path, err.message);
    size_t vocabulary = lmq_model_vocabulary(model);
    for (size_t i = 0; i < n_tokens; i++)
        tokens[i] = (int32_t)random_below(&random, vocabulary);
    options.all_logits = 1;
    options.batch = n_tokens;
    options.context = context > 0 ? context : n_tokens;
    options.threads = 1;
    ck_assert_msg(lmq_session_new(model, &options, &session, &err) == LMQ_OK &&
                      lmq_session_eval(session, tokens, n_tokens, &err) ==
                          LMQ_OK,
                  "%s: %s", path, err.message);
    for (size_t i = 0; i < n_tokens; i++)
        crc = digest_floats(crc, lmq_session_logits(session, n_tokens - 1 - i),
                            vocabulary);
    lmq_session_free(session);
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
    return crc;
}

/* ---- Lines ---- */

static void
print_line(const char *name, const char *source, const char *encoding,
           size_t n_tokens, size_t context)
{
    static const struct lmq_session_options ways[] = {
        {.activations = "q8"},
        {.activations = "q16"},
        {.activations = "q16", .kv = "f16"},
        {.activations = "q8", .kv = "q8"},
        {.activations = "q16", .kv = "f16-q8"},
    };
    struct lmq_convert_options options = {
        .group_size = 64, .replaces = 1, .threads = 1, .encoding = encoding};
    const char *container = in_folder("container.lmq");

    lmq_report_free(convert(source, container, &options));
    fprintf(out, "%-24s %08x  %08x", name, digest_file(container),
           digest_logits(source, &ways[0], n_tokens, context));
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        fprintf(out, " %08x",
                digest_logits(container, &ways[i], n_tokens, context));
    fputc('\n', out);
    remove(container);
}

static void
print_family(const struct family *family)
{
    struct family_model *made = family_make(family, 1, 0, 1);
    size_t n = family->n_tokens > 0 ? family->n_tokens : FAMILY_TOKENS;
    const char *path = in_folder("family");

    family_write(made, path);
    family_free(made);
    print_line(family->name, path, NULL, n, family->context);
}

static void
print_variant(size_t i)
{
    char name[32];

    snprintf(name, sizeof(name), "variant-%zu", i);
    print_line(name, variant_make(i, in_folder("variant")), NULL, MOST_TOKENS,
               0);
}

START_TEST(small_models_are_digested)
{
    fputs("# CRC-32 of the container, of the fp32 logits, and of its logits\n"
          "# with these activations and keys and values; made by "
          "`make golden-file`.\n"
          "# model                 container fp32     q8       q16      "
          "q16,f16  q8,q8    q16,f16-q8\n",
          out);
    print_line("fable", source_path("data/fable"), NULL, MOST_TOKENS, 0);
    print_line("fable-q4", source_path("data/fable"), "q4", MOST_TOKENS, 0);
    print_line("fable-q5", source_path("data/fable"), "q5", MOST_TOKENS, 0);
    print_line("fable-q6", source_path("data/fable"), "q6", MOST_TOKENS, 0);
    for (size_t i = 0; family_at(i) != NULL; i++)
        print_family(family_at(i));
    for (size_t i = 0; i < variant_count(); i++)
        print_variant(i);
    ck_assert_int_eq(fclose(out), 0);
}
END_TEST

int
main(int argc, char **argv)
{
    const TTest *const tests[] = {small_models_are_digested};

    out = argc == 2 ? fopen(argv[1], "w") : NULL;
    if (out == NULL) {
        fprintf(stderr, "usage: golden FILE\n");
        return 2;
    }
    return RUN_SUITE("golden", tests);
}
