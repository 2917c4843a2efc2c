/*
 * test_claims.c - what the tools say of models is so: aliases are what they
 * name, NaN is no result, what changes or is damaged gives nothing.
 */
#include "config.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/error.h"
#include "formats/lmq/lmq.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"
#include "tests/formats/lmq/containers.h"

/* ---- Aliases ---- */

/* Rows of head, embedding, gate and up are alike. */
static const struct build_sizes square = {
    .dim = 64, .hidden = 96, .layers = 2, .heads = 4, .kv_heads = 2,
    .vocab = 96, .context = 32, .is_tied = true};

/* What has one name gets the other: name, role, part, layer and item. */
static void
swap_names(unsigned char *a, unsigned char *b)
{
    for (size_t i = 0; i < 20; i++)
        if (i != 11) { /* the encoding stays */
            unsigned char byte = a[i];
            a[i] = b[i];
            b[i] = byte;
        }
}

/* A container whose only alias has the name `alias`, made of one whose head is
 * the embedding; and a copy of it in which nothing is an alias. */
static void
make_pair(const char *alias, const char *other)
{
    struct build_model *model = build_model(&square, 5);
    const struct lmq_convert_options stored = {.tie = "never", .replaces = 1};
    const struct lmq_convert_options tied = {.replaces = 1};
    size_t n;

    save_folder(model, in_folder("model"), BUILD_F32);
    build_free(model);
    for (int i = 0; i < 2; i++) {
        const char *path = in_folder(i == 0 ? "alias.lmq" : "stored.lmq");
        lmq_report_free(
            convert(in_folder("model"), path, i == 0 ? &tied : &stored));
        unsigned char *bytes = read_file(path, &n);
        swap_names(find_record(bytes, n, alias), find_record(bytes, n, other));
        reseal_lmq(bytes, n);
        write_file(path, bytes, n);
        free(bytes);
    }
}

static void
assert_same_logits(const char *path_a, const char *path_b)
{
    const char *const paths[] = {path_a, path_b};
    const int32_t tokens[] = {1, 5, 90, 7};
    float logits[2][96];
    struct lmq_error err;

    for (int i = 0; i < 2; i++) {
        struct lmq_checkpoint *checkpoint = open_checkpoint(paths[i]);
        struct lmq_session *session;
        struct lmq_model *model;
        ck_assert_msg(lmq_model_open(checkpoint, &model, &err) == LMQ_OK,
                      "%s", err.message);
        ck_assert_int_eq(lmq_session_new(model, NULL, &session, &err), LMQ_OK);
        ck_assert_msg(lmq_session_eval(session, tokens, 4, &err) == LMQ_OK,
                      "%s", err.message);
        memcpy(logits[i], lmq_session_logits(session, 0), sizeof(logits[i]));
        lmq_session_free(session);
        lmq_model_close(model);
        lmq_checkpoint_close(checkpoint);
    }
    ck_assert_mem_eq(logits[0], logits[1], sizeof(logits[0]));
}

static void
assert_no_error(const char *path_a, const char *path_b)
{
    struct lmq_report *report = diff(path_a, path_b, 1);

    ck_assert_double_eq(lmq_report_number(report, "different_elements"), 0);
    ck_assert_double_eq(lmq_report_number(report, "missing"), 0);
    ck_assert_uint_eq(
        lmq_report_length(lmq_report_at(report, "other_shapes")), 0);
    lmq_report_free(report);
}

/* Writes both and compares what comes out with what went in. */
static void
assert_exports_agree(const char *to, const char *type)
{
    const struct lmq_export_options options = {
        .to = to, .type = type, .replaces = 1};
    const char *const names[] = {"alias", "stored"};
    struct lmq_error err;
    char in[32], out[32];

    for (int i = 0; i < 2; i++) {
        snprintf(in, sizeof(in), "%s.lmq", names[i]);
        snprintf(out, sizeof(out), "%s.%s", names[i], to);
        struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder(in));
        ck_assert_msg(lmq_export(checkpoint, in_folder(out), &options, NULL,
                                 NULL, &err) == LMQ_OK,
                      "%s: %s", to, err.message);
        lmq_checkpoint_close(checkpoint);
    }
    snprintf(in, sizeof(in), "alias.%s", to);
    assert_no_error(in_folder(in), in_folder(out));
    assert_no_error(in_folder(in), in_folder("stored.lmq"));
}

/* The name that the alias gets, and that of what had it. In the second row
 * it stays the head, and what it names becomes ffn_up. */
static const char *const aliases[][2] = {
    {"output.weight", "output.weight"},
    {"token_embd.weight", "blk.0.ffn_up.weight"},
    {"token_embd.weight", "output.weight"},
    {"blk.0.ffn_gate.weight", "output.weight"},
    {"blk.1.ffn_up.weight", "output.weight"},
};

START_TEST(an_alias_is_what_it_names_wherever_it_is_read)
{
    make_pair(aliases[_i][0], aliases[_i][1]);
    assert_intact(in_folder("alias.lmq"));
    assert_no_error(in_folder("alias.lmq"), in_folder("stored.lmq"));
    assert_same_logits(in_folder("alias.lmq"), in_folder("stored.lmq"));
    assert_exports_agree("gguf", NULL);
    assert_exports_agree("gguf", "f32");
    assert_exports_agree("llama2c", NULL);
    assert_exports_agree("safetensors", NULL);
    /* Again through the converter, with what it does about ties. */
    lmq_report_free(
        convert(in_folder("alias.lmq"), in_folder("again.lmq"), NULL));
    lmq_report_free(
        convert(in_folder("stored.lmq"), in_folder("twice.lmq"), NULL));
    assert_same_logits(in_folder("again.lmq"), in_folder("twice.lmq"));
}
END_TEST

START_TEST(a_head_is_tied_if_it_is_the_embedding)
{
    static const bool is_tied[] = {true, false, true, false, false};

    make_pair(aliases[_i][0], aliases[_i][1]);
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(in_folder("alias.lmq"));
    ck_assert_int_eq(lmq_checkpoint_is_tied(checkpoint), is_tied[_i]);
    ck_assert_int_eq(checkpoint->hparams.tie,
                     is_tied[_i] ? LMQ_TIE_YES : LMQ_TIE_NO);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

/* ---- NaN and infinity ---- */

struct sickness {
    const char *tensor;
    float factor;      /* of its elements; 0: one element becomes NaN */
    const char *kv;
    const char *where; /* NULL: the model is well */
    size_t position;
};

static const struct sickness sicknesses[] = {
    {"embed_tokens.weight", 0, NULL, "the embedding", 2},
    {"layers.0.mlp.down_proj.weight", INFINITY, NULL, "layer 0 of 0 to 1", 0},
    /* In the last layer only the last token is looked at. */
    {"layers.1.mlp.down_proj.weight", INFINITY, NULL, "layer 1 of 0 to 1", 3},
    {"layers.1.self_attn.v_proj.weight", 1e9f, "q8", "layer 1 of 0 to 1", 3},
    {"layers.0.self_attn.k_proj.weight", 1e6f, "f32", NULL, 0},
    {"layers.0.self_attn.k_proj.weight", 1e6f, "f16", "layer 0 of 0 to 1", 0},
    {"layers.0.self_attn.v_proj.weight", 1e9f, "q8", "layer 0 of 0 to 1", 0},
    {"model.norm.weight", 3e38f, NULL, "the logits", 3},
};

static void
make_sick(const struct sickness *sickness, const char *path)
{
    struct build_sizes sizes = square;
    sizes.is_tied = false;
    struct build_model *model = build_model(&sizes, 5);
    struct build_tensor *tensor = build_find(model, sickness->tensor);

    if (sickness->factor == 0)
        tensor->x[5 * square.dim + 3] = NAN; /* token 5 */
    else
        for (size_t i = 0; i < tensor->n_elements; i++)
            tensor->x[i] *= sickness->factor;
    save_folder(model, path, BUILD_F32);
    build_free(model);
}

START_TEST(what_is_not_finite_is_no_result)
{
    const struct sickness *sickness = &sicknesses[_i];
    const int32_t tokens[] = {1, 2, 5, 7};
    struct lmq_error err = {0};
    struct lmq_model *model;
    char position[32];

    make_sick(sickness, in_folder("model"));
    snprintf(position, sizeof(position), "position %zu ", sickness->position);
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("model"));
    ck_assert_int_eq(lmq_model_open(checkpoint, &model, &err), LMQ_OK);
    for (size_t batch = 1; batch <= 4; batch++) {
        const struct lmq_session_options options = {.batch = batch,
                                                    .kv = sickness->kv};
        struct lmq_session *session;
        ck_assert_int_eq(lmq_session_new(model, &options, &session, &err),
                         LMQ_OK);
        enum lmq_status status = lmq_session_eval(session, tokens, 4, &err);
        ck_assert_int_eq(status, sickness->where == NULL ? LMQ_OK
                                                         : LMQ_ERR_NONFINITE);
        if (sickness->where != NULL) {
            ck_assert_msg(strstr(err.message, sickness->where) != NULL &&
                              strstr(err.message, position) != NULL,
                          "%s", err.message);
            ck_assert_ptr_null(lmq_session_logits(session, 0));
            ck_assert_uint_le(lmq_session_position(session),
                              sickness->position);
        }
        lmq_session_free(session);
    }
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

static enum lmq_status
validate_with(const char *path_a, const char *path_b,
              const struct lmq_validate_options *given, struct lmq_error *err)
{
    static const unsigned char ids[] = {1, 0, 2, 0, 5, 0, 7, 0, 9, 0, 8, 0};
    struct lmq_validate_options options = *given;
    struct lmq_checkpoint *a = open_checkpoint(path_a);
    struct lmq_checkpoint *b = open_checkpoint(path_b);
    struct lmq_report *report;
    int is_partial;

    options.tokens = in_folder("ids");
    write_file(in_folder("ids"), ids, sizeof(ids));
    enum lmq_status status =
        lmq_validate(a, b, &options, NULL, &report, &is_partial, err);
    if (status == LMQ_OK)
        lmq_report_free(report);
    else
        lmq_error_in(err, "?");
    lmq_checkpoint_close(a);
    lmq_checkpoint_close(b);
    return status;
}

static enum lmq_status
validate(const char *path_a, const char *path_b, const char *kv,
         struct lmq_error *err)
{
    const struct lmq_session_options session = {.kv = kv, .threads = 1};
    const struct lmq_validate_options options = {.session = &session};

    return validate_with(path_a, path_b, &options, err);
}

START_TEST(what_is_not_finite_cannot_be_validated)
{
    const struct sickness *sickness = &sicknesses[_i];
    const struct sickness none = {.tensor = "lm_head.weight", .factor = 1};
    struct lmq_error err = {0};
    char where[32];

    make_sick(sickness, in_folder("model"));
    make_sick(&none, in_folder("well"));
    enum lmq_status status =
        validate(in_folder("well"), in_folder("model"), sickness->kv, &err);
    ck_assert_int_eq(status, sickness->where == NULL ? LMQ_OK
                                                     : LMQ_ERR_NONFINITE);
    if (sickness->where == NULL)
        return;
    snprintf(where, sizeof(where), "%.7s", sickness->where);
    ck_assert_msg(strstr(err.message, where) != NULL &&
                      strstr(err.message, "(model)") != NULL,
                  "%s", err.message);
    ck_assert_str_eq(err.path, in_folder("model"));
    if (sickness->kv != NULL)
        return; /* the reference's are float32 */
    ck_assert_int_eq(
        validate(in_folder("model"), in_folder("well"), NULL, &err),
        LMQ_ERR_NONFINITE);
    ck_assert_msg(strstr(err.message, "(reference)") != NULL, "%s",
                  err.message);
}
END_TEST

/* ---- Sources that change ---- */

enum change { TOUCHED, LONGER, REPLACED, N_CHANGES };

struct meddler {
    const char *path;
    enum change change;
    bool is_done;
};

/* A progress callback: somebody else writes to a source. */
static int
meddle(void *context, const char *stage, uint64_t done, uint64_t total)
{
    struct meddler *meddler = context;
    const struct timespec times[2] = {{1, 0}, {1, 1}};
    unsigned char *bytes;
    size_t n;

    (void)stage, (void)done, (void)total;
    if (meddler->is_done)
        return 0;
    meddler->is_done = true;
    if (meddler->change == TOUCHED) {
        ck_assert_int_eq(utimensat(AT_FDCWD, meddler->path, times, 0), 0);
        return 0;
    }
    bytes = read_file(meddler->path, &n);
    if (meddler->change == LONGER) {
        FILE *file = fopen(meddler->path, "ab");
        ck_assert_ptr_nonnull(file);
        fputc(' ', file);
        fclose(file);
    } else { /* as editors and downloads do it */
        write_file(in_folder("new"), bytes, n);
        ck_assert_int_eq(rename(in_folder("new"), meddler->path), 0);
    }
    free(bytes);
    return 0;
}

static enum lmq_status
work_on(int what, struct lmq_checkpoint *checkpoint,
        const struct lmq_progress *progress, struct lmq_error *err)
{
    static const char *const formats[] = {"gguf", "llama2c", "safetensors"};
    const struct lmq_export_options export = {.to = formats[what % 3]};
    const struct lmq_validate_options validation = {
        .tokens = in_folder("ids"),
        .session = &(struct lmq_session_options){.threads = 1}};
    struct lmq_checkpoint *other;
    struct lmq_report *report = NULL;
    int is_partial;

    if (what < 3)
        return lmq_export(checkpoint, in_folder("out"), &export, progress,
                          NULL, err);
    if (what == 3)
        return lmq_convert(checkpoint, in_folder("out"), NULL, progress, NULL,
                           err);
    other = open_checkpoint(in_folder("other"));
    enum lmq_status status =
        what == 4 ? lmq_diff(other, checkpoint, NULL, progress, &report, err)
                  : lmq_validate(checkpoint, other, &validation, progress,
                                 &report, &is_partial, err);
    ck_assert_ptr_null(report);
    lmq_checkpoint_close(other);
    return status;
}

START_TEST(a_source_that_changes_gives_nothing)
{
    static const char *const files[] = {"model/model.safetensors",
                                        "model/config.json"};
    static const unsigned char ids[] = {1, 0, 2, 0, 5, 0, 7, 0, 9, 0, 8, 0};
    struct build_model *model = build_model(&square, 5);

    save_folder(model, in_folder("other"), BUILD_F32);
    write_file(in_folder("ids"), ids, sizeof(ids));
    for (int file = 0; file < 2; file++)
        for (int change = 0; change < N_CHANGES; change++) {
            save_folder(model, in_folder("model"), BUILD_F32);
            struct meddler meddler = {in_folder(files[file]),
                                      (enum change)change, false};
            const struct lmq_progress progress = {.report = meddle,
                                                  .context = &meddler};
            struct lmq_error err = {0};
            struct lmq_checkpoint *checkpoint =
                open_checkpoint(in_folder("model"));
            enum lmq_status status =
                work_on(_i, checkpoint, &progress, &err);
            lmq_checkpoint_close(checkpoint);
            ck_assert(meddler.is_done);
            ck_assert_msg(status == LMQ_ERR_IO, "%s %d: %d %s", files[file],
                          change, (int)status, err.message);
            ck_assert_msg(strstr(err.message, "changed while it was read"),
                          "%s", err.message);
            ck_assert_str_eq(err.path, in_folder(files[file]));
            ck_assert_int_ne(access(in_folder("out"), F_OK), 0);
        }
    build_free(model);
}
END_TEST

/* ---- Checksums ---- */

static void
damage(const char *path, const char *name)
{
    size_t n;
    unsigned char *bytes = read_file(path, &n);
    unsigned char *record = find_record(bytes, n, name);

    bytes[lmq_load_u64le(record + 96) + 5] ^= 1;
    write_file(path, bytes, n);
    free(bytes);
}

static void
make_damaged(const char *name, const char *layout)
{
    const struct lmq_convert_options options = {.layout = layout,
                                                .replaces = 1};
    struct build_model *model = build_model(&square, 5);

    save_folder(model, in_folder("model"), BUILD_F32);
    build_free(model);
    lmq_report_free(
        convert(in_folder("model"), in_folder("m.lmq"), &options));
    damage(in_folder("m.lmq"), name);
}

START_TEST(validate_and_diff_find_damaged_tensors)
{
    static const char *const names[] = {
        "token_embd.weight", "blk.1.ffn_up.weight", "blk.0.attn_norm.weight",
        "output_norm.weight"};
    struct lmq_error err = {0};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        for (int is_tiles = 0; is_tiles < 2; is_tiles++) {
            make_damaged(names[i], is_tiles ? "tiles" : "rows");
            ck_assert_int_eq(validate(in_folder("model"), in_folder("m.lmq"),
                                      NULL, &err),
                             LMQ_ERR_FORMAT);
            ck_assert_msg(strstr(err.message, names[i]) != NULL, "%s",
                          err.message);
            struct lmq_checkpoint *both[] = {
                open_checkpoint(in_folder("model")),
                open_checkpoint(in_folder("m.lmq"))};
            for (int first = 0; first < 2; first++)
                ck_assert_int_eq(lmq_diff(both[first], both[!first], NULL,
                                          NULL, NULL, &err), LMQ_ERR_FORMAT);
            lmq_checkpoint_close(both[0]);
            lmq_checkpoint_close(both[1]);
        }
}
END_TEST

/* A wrong bit of a weight can be computed with; a wrong checksum is all that
 * tells. */
START_TEST(validate_without_checksums_computes_with_what_is_there)
{
    const struct lmq_validate_options options = {.skips_checksums = 1};
    struct lmq_error err = {0};

    make_damaged("blk.1.ffn_up.weight", "tiles");
    ck_assert_int_eq(
        validate(in_folder("model"), in_folder("m.lmq"), NULL, &err),
        LMQ_ERR_FORMAT);
    ck_assert_msg(validate_with(in_folder("model"), in_folder("m.lmq"),
                                &options, &err) == LMQ_OK,
                  "%s", err.message);
}
END_TEST

START_TEST(what_is_copied_is_checked_before_it_is_computed_with)
{
    static const struct {
        const char *name, *layout;
        enum lmq_status status;
    } cases[] = {
        {"blk.0.attn_norm.weight", "tiles", LMQ_ERR_FORMAT},
        {"blk.1.ffn_up.weight", "rows", LMQ_ERR_FORMAT},
        {"blk.1.ffn_up.weight", "tiles", LMQ_OK}, /* as it lies in the file */
    };
    struct lmq_error err = {0};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lmq_model *model = NULL;
        make_damaged(cases[i].name, cases[i].layout);
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(in_folder("m.lmq"));
        ck_assert_int_eq(lmq_model_open(checkpoint, &model, &err),
                         cases[i].status);
        lmq_model_close(model);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

int
main(void)
{
    const TTest *const over_aliases[] = {
        an_alias_is_what_it_names_wherever_it_is_read,
        a_head_is_tied_if_it_is_the_embedding,
    };
    const TTest *const over_sicknesses[] = {
        what_is_not_finite_is_no_result,
        what_is_not_finite_cannot_be_validated,
    };
    const TTest *const over_work[] = {a_source_that_changes_gives_nothing};
    const TTest *const others[] = {
        validate_and_diff_find_damaged_tensors,
        validate_without_checksums_computes_with_what_is_there,
        what_is_copied_is_checked_before_it_is_computed_with,
    };
    int failed = RUN_SUITE_OVER("aliases", over_aliases, 0,
                                COUNT_OF(aliases));

    failed |= RUN_SUITE_OVER("NaN", over_sicknesses, 0,
                             COUNT_OF(sicknesses));
    failed |= RUN_SUITE_OVER("changes", over_work, 0, 6);
    failed |= RUN_SUITE("checksums", others);
    return failed;
}
