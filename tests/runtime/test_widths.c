/*
 * test_widths.c - heads of every small width, with every option that decides
 * how keys and values are stored or what is quantized.
 *
 * Rows of a cache round up in their own ways; memory is made for exactly so
 * many bytes, so that AddressSanitizer sees one too many.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"
#include "tests/families/variants.h"

#define FIRST_WIDTH 2
#define LAST_WIDTH 34
#define TOKENS 24

static const char *const kv_names[] = {"f32", "f16", "f16-q8", "q8"};
static const char *const activation_names[] = {"f32", "q16", "q8"};

/* ---- Models ---- */

/* One layer: what matters here is the same in all. */
static struct lmq_hparams *
describe(uint32_t head_dim)
{
    struct lmq_hparams *h = malloc(sizeof(*h));

    ck_assert_ptr_nonnull(h);
    variant_base(h);
    h->n_layers = 1;
    h->dim = 20;
    h->hidden_dim = 28;
    h->vocab_size = 23;
    h->n_heads = 2;
    h->n_kv_heads = 1;
    h->head_dim = head_dim;
    /* Pairs turn; what is left over of an odd head stands still. */
    h->rotary_dim = head_dim - head_dim % 2;
    return h;
}

/* Values have a width of their own: it goes down as the keys' goes up. */
static void
mix_widths(struct lmq_hparams *h)
{
    h->value_dim = FIRST_WIDTH + LAST_WIDTH - h->head_dim;
}

/* One row for all heads, and the values are its beginning. */
static void
share_latents(struct lmq_hparams *h)
{
    h->n_kv_heads = h->n_heads;
    h->rotary_dim = 2;
    h->kv_lora_rank = h->head_dim;
    h->head_dim += 2;
    h->value_dim = 7;
}

/* ---- Every combination ---- */

static void
validate(struct lmq_checkpoint *reference, struct lmq_checkpoint *judged,
         const char *kv, const char *activations, int has_attribution)
{
    const struct lmq_session_options session = {
        .context = TOKENS / 2,
        .kv = kv,
        .activations = activations,
        .threads = 1,
    };
    const struct lmq_validate_options options = {
        .tokens = in_folder("tokens"),
        .session = &session,
        .has_attribution = has_attribution,
    };
    struct lmq_report *report;
    struct lmq_error err;
    int is_partial;

    REQUIRE(lmq_validate(reference, judged, &options, NULL, &report,
                         &is_partial, &err) == LMQ_OK,
            "%s: %s", err.path, err.message);
    double kld = lmq_report_number(report, "kld.mean");
    REQUIRE(isfinite(kld) && kld < 1, "kv %s, activations %s: %g", kv,
            activations, kld);
    lmq_report_free(report);
}

static void
run(struct lmq_checkpoint *checkpoint, const char *kv,
    const char *activations)
{
    const struct lmq_session_options options = {.context = TOKENS,
                                                .batch = 5,
                                                .kv = kv,
                                                .activations = activations,
                                                .threads = 1};
    int32_t tokens[TOKENS];
    struct lmq_model *model;
    struct lmq_session *session;
    struct lmq_error err;

    for (size_t i = 0; i < TOKENS; i++)
        tokens[i] = (int32_t)i % 23;
    REQUIRE(lmq_model_open(checkpoint, &model, &err) == LMQ_OK, "%s",
            err.message);
    REQUIRE(lmq_session_new(model, &options, &session, &err) == LMQ_OK, "%s",
            err.message);
    REQUIRE(lmq_session_eval(session, tokens, TOKENS, &err) == LMQ_OK, "%s",
            err.message);
    lmq_session_free(session);
    lmq_model_close(model);
}

static void
sweep(const struct lmq_hparams *h)
{
    const char *folder = variant_write(h, false, h->head_dim,
                                       in_folder("float"));
    const char *path = in_folder("int8.lmq");
    struct bytes tokens = {0};

    lmq_report_free(convert(folder, path, NULL));
    for (size_t i = 0; i < TOKENS; i++)
        put_u16(&tokens, (uint16_t)(i * 7 % h->vocab_size));
    write_file(in_folder("tokens"), tokens.at, tokens.n);
    bytes_free(&tokens);
    struct lmq_checkpoint *reference = open_checkpoint(folder);
    struct lmq_checkpoint *judged[] = {open_checkpoint(path),
                                       open_checkpoint(folder)};
    for (size_t model = 0; model < 2; model++)
        for (size_t kv = 0; kv < 3; kv++)
            for (size_t i = 0; i < 3; i++) {
                run(judged[model], kv_names[kv], activation_names[i]);
                for (int attributes = 0; attributes < 2; attributes++)
                    validate(reference, judged[model], kv_names[kv],
                             activation_names[i], attributes);
            }
    lmq_checkpoint_close(judged[1]);
    lmq_checkpoint_close(judged[0]);
    lmq_checkpoint_close(reference);
    remove(path);
}

START_TEST(heads_of_this_width_stay_within_their_rows)
{
    struct lmq_hparams *h = describe((uint32_t)_i);

    sweep(h);
    free(h);
}
END_TEST

START_TEST(values_of_another_width_stay_within_their_rows)
{
    struct lmq_hparams *h = describe((uint32_t)_i);

    mix_widths(h);
    sweep(h);
    free(h);
}
END_TEST

START_TEST(latents_of_this_rank_stay_within_their_rows)
{
    struct lmq_hparams *h = describe((uint32_t)_i);

    share_latents(h);
    sweep(h);
    free(h);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        heads_of_this_width_stay_within_their_rows,
        values_of_another_width_stay_within_their_rows,
        latents_of_this_rank_stay_within_their_rows,
    };

    return RUN_SUITE_OVER("widths", tests, FIRST_WIDTH, LAST_WIDTH + 1);
}
