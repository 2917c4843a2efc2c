/*
 * test_protocol.c - what validate scores, when it stops, and what it refuses.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "runtime/tokenizer/corpus.h"
#include "tests/build/suite.h"
#include "tests/validate/validate_fable.h"

/* ---- Protocol ---- */

START_TEST(each_token_is_scored_once_whatever_the_stride)
{
    const char *text = short_text("text.txt", 3000);
    struct lmq_validate_options options = usual_options(&text);
    struct lmq_report *report = validate(fable(""), fable(""), &options);
    double scored = lmq_report_number(report, "scored");
    double perplexity = lmq_report_number(report, "reference.ppl");

    lmq_report_free(report);
    options.stride = CONTEXT / 4;
    report = validate(fable(""), fable(""), &options);
    ck_assert_double_eq(lmq_report_number(report, "scored"), scored);
    /* More context before each token: it is guessed better. */
    ck_assert_double_lt(lmq_report_number(report, "reference.ppl"),
                        perplexity);
    lmq_report_free(report);
}
END_TEST

START_TEST(second_half_scores_the_second_half_of_whole_windows)
{
    const char *text = short_text("text.txt", 3000);
    struct lmq_validate_options options = usual_options(&text);

    options.score = "second-half";
    struct lmq_report *report = validate(fable(""), fable(""), &options);
    double windows = lmq_report_number(report, "protocol.windows");
    ck_assert_double_eq(lmq_report_number(report, "scored"),
                        windows * (CONTEXT - CONTEXT / 2 - 1));
    lmq_report_free(report);
}
END_TEST

/* Two bytes each where all fit into them. */
START_TEST(ids_of_a_large_vocabulary_have_four_bytes)
{
    static const unsigned char bytes[] = {1, 0, 0, 0, 0, 0, 1, 0};
    const struct lmq_protocol protocol = {.context = 4, .stride = 4};

    write_file(in_folder("ids"), bytes, sizeof(bytes));
    for (size_t i = 0; i < 2; i++) {
        struct lmq_corpus corpus;
        struct lmq_error err;
        ck_assert_int_eq(lmq_corpus_from_ids(in_folder("ids"), 65536 + i, -1,
                                             &protocol, &corpus, &err),
                         LMQ_OK);
        ck_assert_uint_eq(corpus.n_tokens, i == 0 ? 4 : 2);
        ck_assert_int_eq(corpus.tokens[0], 1);
        ck_assert_int_eq(corpus.tokens[i == 0 ? 3 : 1], i == 0 ? 1 : 65536);
        lmq_corpus_free(&corpus);
    }
}
END_TEST

/* Whatever the vocabulary, and if the last one is cut off. */
START_TEST(ids_may_be_wider_than_they_need_be)
{
    const struct lmq_protocol protocol = {.context = 40, .stride = 40};

    for (size_t width = 2; width <= 8; width *= 2)
        for (size_t i = 0; i < 4; i++) {
            size_t vocabulary = i % 2 == 0 ? 500 : 70000, n = 40 * width;
            unsigned char bytes[40 * 8] = {0};
            struct lmq_corpus corpus;
            struct lmq_error err;
            if (width == 2 && vocabulary > 500)
                continue;
            for (size_t k = 0; k < 40; k++)
                lmq_store_u16le(bytes + width * k, (uint16_t)(300 + k));
            write_file(in_folder("ids"), bytes, i < 2 ? n : n - width / 2);
            enum lmq_status status = lmq_corpus_from_ids(
                in_folder("ids"), vocabulary, -1, &protocol, &corpus, &err);
            if (i >= 2) {
                ck_assert_int_eq(status, LMQ_ERR_FORMAT);
                continue;
            }
            ck_assert_int_eq(status, LMQ_OK);
            ck_assert_uint_eq(corpus.n_tokens, 40);
            ck_assert_int_eq(corpus.tokens[39], 339);
            lmq_corpus_free(&corpus);
        }
}
END_TEST

/* Ids of another vocabulary, or -1 as padding, are told of as they are, and
 * not taken for twice as many of 2 bytes, all of which this one has. */
START_TEST(wide_ids_are_wide_though_one_is_none)
{
    static const struct {
        size_t width;
        int64_t id;
        const char *said;
    } cases[] = {{4, 70000, "id 70000 at offset 28"},
                 {8, 70000, "id 70000 at offset 56"},
                 {4, -1, "id 4294967295 at offset 28"},
                 {8, -1, "id 18446744073709551615 at offset 56"}};
    const struct lmq_protocol protocol = {.context = 40, .stride = 40};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        unsigned char bytes[40 * 8] = {0};
        struct lmq_corpus corpus;
        struct lmq_error err;
        for (size_t k = 0; k < 40; k++) {
            int64_t id = k == 7 ? cases[i].id : (int64_t)(300 + k);
            for (size_t b = 0; b < cases[i].width; b++)
                bytes[cases[i].width * k + b] =
                    (unsigned char)((uint64_t)id >> 8 * b);
        }
        write_file(in_folder("ids"), bytes, 40 * cases[i].width);
        ck_assert_int_eq(lmq_corpus_from_ids(in_folder("ids"), 65536, -1,
                                             &protocol, &corpus, &err),
                         LMQ_ERR_FORMAT);
        ck_assert_msg(strstr(err.message, cases[i].said) != NULL, "%s",
                      err.message);
    }
}
END_TEST

/* The bytes that bits per byte are of. */
static long
count_bytes(const char *text, const char *tokenizer, int splits)
{
    const struct lmq_open_options open = {.tokenizer = tokenizer};
    struct lmq_validate_options options = usual_options(&text);
    struct lmq_checkpoint *model;
    struct lmq_report *report;
    struct lmq_error err;
    int is_partial;

    options.splits_documents = splits;
    ck_assert_int_eq(lmq_checkpoint_open(fable(""), &open, &model, NULL),
                     LMQ_OK);
    ck_assert_msg(lmq_validate(model, model, &options, NULL, &report,
                               &is_partial, &err) == LMQ_OK,
                  "%s", err.message);
    double bits = lmq_report_number(report, "reference.nll") *
                  lmq_report_number(report, "scored") / log(2);
    long n = lround(bits /
                    lmq_report_number(report, "reference.bits_per_byte"));
    lmq_report_free(report);
    lmq_checkpoint_close(model);
    return n;
}

START_TEST(bits_are_per_byte_of_the_text)
{
    static const char prepend[] = "{ \"type\": \"Prepend\", \"prepend\": "
                                  "\"\xe2\x96\x81\" },";
    static const char *const texts[] = {"a", "  a", "\na", "Once upon a time"};
    const char *tokenizers[] = {fable("tokenizer.json"),
                                in_folder("bare.json")};
    const char *text = in_folder("text.txt");
    size_t n;

    /* One that puts no blank before a text. */
    char *json = (char *)read_file(tokenizers[0], &n);
    memset(strstr(json, prepend), ' ', strlen(prepend));
    write_file(tokenizers[1], json, n);
    free(json);
    for (size_t i = 0; i < 2; i++) {
        for (size_t j = 0; j < sizeof(texts) / sizeof(texts[0]); j++) {
            write_file(text, texts[j], strlen(texts[j]));
            ck_assert_int_eq(count_bytes(text, tokenizers[i], 0),
                             (long)strlen(texts[j]));
        }
        write_file(text, "A fox.\n\nA cat.\n\n\nA hen.\n", 24);
        ck_assert_int_eq(count_bytes(text, tokenizers[i], 1), 3 * 6);
        write_file(text, "\n  A fox.\r\n \r\n\tA cat. \n \n", 25);
        ck_assert_int_eq(count_bytes(text, tokenizers[i], 1), 8 + 8);
        /* Of several windows only the first begins with it. */
        ck_assert_int_eq(count_bytes(short_text("long.txt", 900),
                                     tokenizers[i], 0),
                         900);
    }
}
END_TEST

static bool
has_note(const struct lmq_report *report, const char *text)
{
    const struct lmq_report *notes = lmq_report_at(report, "notes");
    bool has = false;

    for (size_t i = 0; i < lmq_report_length(notes); i++)
        has |= strstr(lmq_report_string(lmq_report_item(notes, i), ""),
                      text) != NULL;
    return has;
}

START_TEST(documents_without_a_whole_window_are_told_of)
{
    char *long_one = first_lines("held-out-a.txt", 900);
    const char *text = in_folder("text.txt");
    struct lmq_validate_options options = usual_options(&text);
    char both[1024];

    for (char *p = long_one; *p != '\0'; p++)
        if (*p == '\n')
            *p = ' ';
    snprintf(both, sizeof(both), "A fox.\n\n%s\n\nA cat.\n", long_one);
    free(long_one);
    write_file(text, both, strlen(both));
    options.score = "second-half";
    options.splits_documents = 1;
    struct lmq_report *report = validate(fable(""), fable(""), &options);
    ck_assert_double_eq(lmq_report_number(report, "protocol.documents"), 1);
    ck_assert(has_note(report, "2 of 3 documents do not fill a window of"));
    lmq_report_free(report);
    /* Those behind a limit are not meant. */
    options.max_tokens = CONTEXT + 10;
    report = validate(fable(""), fable(""), &options);
    ck_assert(has_note(report, "1 of 2 documents does not fill a window"));
    lmq_report_free(report);
    options.score = "all";
    report = validate(fable(""), fable(""), &options);
    ck_assert(!has_note(report, "left out"));
    lmq_report_free(report);
}
END_TEST

static void
assert_fails(const char *text, enum lmq_status wanted, const char *says)
{
    struct lmq_validate_options options = usual_options(&text);
    struct lmq_report *report;
    struct lmq_error err;
    int is_partial;
    enum lmq_status status = try_validate(
        fable(""), fable(""), &options, NULL, &report, &is_partial, &err);

    ck_assert_int_eq(status, wanted);
    ck_assert_msg(strstr(err.message, says) != NULL, "%s", err.message);
    ck_assert_str_ne(err.path, "");
}

START_TEST(texts_that_are_none_are_refused)
{
    const char *empty = in_folder("empty.txt"), *bad = in_folder("bad.txt");

    write_file(empty, "", 0);
    write_file(bad, "good\n\xff\xfe", 7);
    assert_fails(empty, LMQ_ERR_FORMAT, "empty");
    assert_fails(bad, LMQ_ERR_FORMAT, "not UTF-8");
    assert_fails(in_folder("missing.txt"), LMQ_ERR_IO, "cannot open");
}
END_TEST

START_TEST(gates_are_checked_before_the_work_and_held_after_it)
{
    static const char *const typo[] = {"kld.meen<=1"};
    static const char *const gates[] = {"kld.mean<=1", "ppl_ratio>2"};
    const char *text = short_text("text.txt", 1000);
    struct lmq_validate_options options = usual_options(&text);
    struct lmq_report *report;
    struct lmq_error err;
    int is_partial;

    options.gates = typo;
    options.n_gates = 1;
    ck_assert_int_eq(try_validate(fable(""), fable(""), &options, NULL,
                                  &report, &is_partial, &err),
                     LMQ_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(err.message, "kld.meen"));
    options.gates = gates;
    options.n_gates = 2;
    report = validate(fable(""), fable(""), &options);
    ck_assert_double_eq(lmq_report_number(report, "gates.0.held"), 1);
    ck_assert_double_eq(lmq_report_number(report, "gates.1.held"), 0);
    lmq_report_free(report);
}
END_TEST

/* fable against itself, whose tokenizer has two pieces of one letter that
 * have changed places. */
static enum lmq_status
validate_swapped(char first, char second, struct lmq_error *err)
{
    const char *changed = in_folder("tokenizer.json");
    const struct lmq_open_options with = {.tokenizer = changed};
    const char *text = short_text("text.txt", 1000);
    struct lmq_validate_options options = usual_options(&text);
    struct lmq_checkpoint *a = open_with_tokenizer(fable("")), *b;
    const char p[] = {'"', first, '"', ':', '\0'};
    const char q[] = {'"', second, '"', ':', '\0'};
    struct lmq_report *report;
    int is_partial;
    size_t n;

    char *json = (char *)read_file(fable("tokenizer.json"), &n);
    char *x = strstr(json, p), *y = strstr(json, q);
    ck_assert(x != NULL && y != NULL);
    x[1] = second;
    y[1] = first;
    write_file(changed, json, n);
    free(json);
    ck_assert_int_eq(lmq_checkpoint_open(fable(""), &with, &b, NULL), LMQ_OK);
    enum lmq_status status =
        lmq_validate(a, b, &options, NULL, &report, &is_partial, err);
    lmq_report_free(report);
    lmq_checkpoint_close(a);
    lmq_checkpoint_close(b);
    return status;
}

START_TEST(a_tokenizer_that_differs_in_the_text_is_refused)
{
    struct lmq_error err;

    ck_assert_int_eq(validate_swapped('a', 's', &err), LMQ_ERR_FORMAT);
    ck_assert_msg(strstr(err.message, "differs") != NULL, "%s", err.message);
    ck_assert_int_eq(validate_swapped('Z', 'K', &err), LMQ_OK);
}
END_TEST

/* ---- Interruption ---- */

static int
stop_later(void *context, const char *stage, uint64_t done, uint64_t total)
{
    (void)stage;
    return (double)done > *(double *)context * (double)total;
}

START_TEST(an_interruption_leaves_what_was_done)
{
    const char *text = fable("held-out-a.txt");
    struct lmq_validate_options options = usual_options(&text);
    struct lmq_report *report;
    struct lmq_error err;
    double part = 0.5;
    const struct lmq_progress progress = {.report = stop_later,
                                          .context = &part};
    const char *gate = "kld.mean<=0";
    int is_partial;

    options.max_tokens = 6000;
    options.gates = &gate;
    options.n_gates = 1;
    ck_assert_msg(try_validate(fable(""), fable(""), &options, &progress,
                               &report, &is_partial, &err) == LMQ_OK,
                  "%s", err.message);
    ck_assert_int_eq(is_partial, 1);
    ck_assert_double_eq(lmq_report_number(report, "partial"), 1);
    ck_assert_double_gt(lmq_report_number(report, "scored"), 0);
    ck_assert_double_lt(lmq_report_number(report, "scored"), 5000);
    /* Gates were set, and nobody knows whether they hold. */
    ck_assert_double_eq(lmq_report_number(report, "verdict.gates"), 1);
    ck_assert(!isfinite(lmq_report_number(report, "verdict.broken")));
    lmq_report_free(report);
    part = 0;
    ck_assert_int_eq(try_validate(fable(""), fable(""), &options, &progress,
                                  &report, &is_partial, &err),
                     LMQ_ERR_CANCELLED);
}
END_TEST

/* Wherever it comes: within the logits of a window, too, of which the first 16
 * have theirs from 0.4 of the work on. */
START_TEST(an_interruption_leaves_whole_windows)
{
    const char *text = fable("held-out-a.txt");
    struct lmq_validate_options options = usual_options(&text);
    size_t n_partial = 0;

    options.max_tokens = 3000;
    for (int i = 0; i < 20; i++) {
        double part = 0.42 + 0.004 * i;
        const struct lmq_progress progress = {.report = stop_later,
                                              .context = &part};
        struct lmq_report *report;
        int is_partial;
        ck_assert_int_eq(try_validate(fable(""), fable(""), &options,
                                      &progress, &report, &is_partial, NULL),
                         LMQ_OK);
        double windows = lmq_report_number(report, "protocol.windows");
        ck_assert(!is_partial || lmq_report_number(report, "scored") ==
                                     windows * (CONTEXT - 1));
        ck_assert(!is_partial ||
                  lmq_report_number(report, "tokens") == windows * CONTEXT);
        n_partial += is_partial != 0;
        lmq_report_free(report);
    }
    ck_assert_uint_eq(n_partial, 20);
}
END_TEST

/* Of the windows that were finished; here each is a document. */
START_TEST(an_interruption_leaves_the_documents_that_were_read)
{
    const char *text = fable("held-out-a.txt");
    struct lmq_validate_options options = usual_options(&text);
    const struct lmq_session_options session = {.context = 1024};
    double part = 0.8;
    const struct lmq_progress progress = {.report = stop_later,
                                          .context = &part};
    struct lmq_report *report;
    int is_partial;

    options.session = &session;
    options.splits_documents = 1;
    options.max_tokens = 6000;
    ck_assert_int_eq(try_validate(fable(""), fable(""), &options, &progress,
                                  &report, &is_partial, NULL),
                     LMQ_OK);
    ck_assert_int_eq(is_partial, 1);
    ck_assert_double_gt(lmq_report_number(report, "protocol.windows"), 1);
    ck_assert_double_eq(lmq_report_number(report, "protocol.documents"),
                        lmq_report_number(report, "protocol.windows"));
    lmq_report_free(report);
}
END_TEST

START_TEST(the_page_is_whole_and_asks_nothing_of_the_network)
{
    const char *text = short_text("text.txt", 2000);
    const char *judged = quantize(fable(""), "fable.lmq");
    const char *path = in_folder("report.html");
    struct lmq_validate_options options = usual_options(&text);
    size_t n;

    options.has_attribution = 1;
    struct lmq_report *report = validate(fable(""), judged, &options);
    ck_assert_int_eq(lmq_validate_write_html(report, path, 0, NULL), LMQ_OK);
    ck_assert_int_eq(lmq_validate_write_html(report, path, 0, NULL),
                     LMQ_ERR_IO);
    ck_assert_int_eq(lmq_validate_write_html(report, path, 1, NULL), LMQ_OK);
    char *page = (char *)read_file(path, &n);
    ck_assert_ptr_nonnull(strstr(page, "</html>"));
    ck_assert_ptr_null(strstr(page, "<script"));
    ck_assert_ptr_null(strstr(page, "http"));
    ck_assert_ptr_null(strstr(page, "src="));
    ck_assert_ptr_null(strstr(page, "nan"));
    free(page);
    lmq_report_free(report);
}
END_TEST

START_TEST(the_page_shows_what_a_text_would_hide)
{
    static const char bytes[] = "The cat \x1b]0;x\a sat.\r"
                                "\xe2\x80\xae Caf\xc3\xa9 <b>";
    const char *judged = quantize(fable(""), "fable.lmq");
    const char *text = in_folder("text.txt");
    struct lmq_validate_options options = usual_options(&text);
    char *page;

    write_file(text, bytes, strlen(bytes));
    struct lmq_report *report = validate(fable(""), judged, &options);
    ck_assert_int_eq(lmq_validate_html(report, &page, NULL), LMQ_OK);
    for (const char *p = page; *p != '\0'; p++)
        ck_assert_msg((unsigned char)*p >= ' ' || *p == '\n', "byte %d", *p);
    ck_assert_ptr_null(strstr(page, "\xe2\x80\xae"));
    ck_assert_ptr_nonnull(strstr(page, "\\x1b]0;x\\x07"));
    ck_assert_ptr_nonnull(strstr(page, "\\xe2\\x80\\xae Caf\xc3\xa9"));
    lmq_text_free(page);
    lmq_report_free(report);
}
END_TEST

START_TEST(no_divergence_comes_from_nowhere)
{
    const char *text = short_text("text.txt", 2000);
    struct lmq_validate_options options = usual_options(&text);
    char *page;

    options.has_attribution = 1;
    struct lmq_report *report = validate(fable(""), fable(""), &options);
    ck_assert_int_eq(lmq_validate_html(report, &page, NULL), LMQ_OK);
    ck_assert_ptr_nonnull(strstr(page, "There is none (over"));
    ck_assert_ptr_null(strstr(page, "nan"));
    lmq_text_free(page);
    lmq_report_free(report);
}
END_TEST

START_TEST(each_type_of_keys_and_values_has_its_error)
{
    const char *text = short_text("text.txt", 2000);
    const char *judged = quantize(fable(""), "fable.lmq");
    struct lmq_validate_options options = usual_options(&text);

    options.has_attribution = 1;
    struct lmq_report *report = validate(fable(""), judged, &options);
    double f32 = lmq_report_number(report, "attribution.kv.0.kld");
    ck_assert_double_eq(lmq_report_number(report, "attribution.kld"), f32);
    ck_assert_str_eq(lmq_report_string(report, "attribution.kv.2.type"), "q8");
    ck_assert_double_gt(
        lmq_report_number(report, "attribution.kv.2.added"),
        fabs(lmq_report_number(report, "attribution.kv.1.added")));
    lmq_report_free(report);
}
END_TEST

/* Keys and values of 8 bits are not what activations lose. */
START_TEST(keys_and_values_have_a_share_of_their_own)
{
    const struct lmq_session_options session = {.context = CONTEXT,
                                                .kv = "q8"};
    const char *text = short_text("text.txt", 2000);
    const char *judged = quantize(fable(""), "fable.lmq");
    const char *path = in_folder("report.html");
    struct lmq_validate_options options = usual_options(&text);
    size_t n;

    options.has_attribution = 1;
    struct lmq_report *plain = validate(fable(""), judged, &options);
    ck_assert(lmq_report_number(plain, "attribution.keys_values") == 0);
    options.session = &session;
    struct lmq_report *report = validate(fable(""), judged, &options);
    const struct lmq_report *a = lmq_report_at(report, "attribution");
    ck_assert_double_eq_tol(lmq_report_number(a, "keys_values") *
                                lmq_report_number(a, "kld"),
                            lmq_report_number(a, "kv.2.added"), 1e-12);
    ck_assert_double_eq_tol(lmq_report_number(a, "weights") +
                                lmq_report_number(a, "activations") +
                                lmq_report_number(a, "keys_values"),
                            1, 1e-12);
    ck_assert_int_eq(lmq_validate_write_html(report, path, 1, NULL), LMQ_OK);
    char *page = (char *)read_file(path, &n);
    ck_assert_ptr_nonnull(strstr(page, "%, keys and values "));
    free(page);
    lmq_report_free(report);
    lmq_report_free(plain);
}
END_TEST

/* Same weights, but the judged one turns by another base: each side has to go
 * by its own description. */
START_TEST(positions_that_differ_are_seen)
{
    const char *text = short_text("text.txt", 1000);
    struct lmq_validate_options options = usual_options(&text);
    const struct lmq_open_options open = {.rope_theta = 5000};
    struct lmq_checkpoint *a = open_with_tokenizer(fable("")), *b;
    struct lmq_report *report;
    struct lmq_error err;
    int is_partial;

    ck_assert_int_eq(lmq_checkpoint_open(fable(""), &open, &b, &err), LMQ_OK);
    ck_assert_msg(lmq_validate(a, b, &options, NULL, &report, &is_partial,
                               &err) == LMQ_OK,
                  "%s", err.message);
    ck_assert_double_gt(lmq_report_number(report, "kld.mean"), 1e-4);
    lmq_report_free(report);
    lmq_checkpoint_close(b);
    lmq_checkpoint_close(a);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        each_token_is_scored_once_whatever_the_stride,
        second_half_scores_the_second_half_of_whole_windows,
        ids_of_a_large_vocabulary_have_four_bytes,
        ids_may_be_wider_than_they_need_be,
        wide_ids_are_wide_though_one_is_none,
        bits_are_per_byte_of_the_text,
        documents_without_a_whole_window_are_told_of,
        texts_that_are_none_are_refused,
        gates_are_checked_before_the_work_and_held_after_it,
        a_tokenizer_that_differs_in_the_text_is_refused,
        an_interruption_leaves_what_was_done,
        an_interruption_leaves_whole_windows,
        an_interruption_leaves_the_documents_that_were_read,
        the_page_is_whole_and_asks_nothing_of_the_network,
        the_page_shows_what_a_text_would_hide,
        no_divergence_comes_from_nowhere,
        each_type_of_keys_and_values_has_its_error,
        keys_and_values_have_a_share_of_their_own,
        positions_that_differ_are_seen,
    };

    return RUN_SUITE("protocol", tests);
}
