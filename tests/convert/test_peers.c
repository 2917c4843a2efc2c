/*
 * test_peers.c - processes that share a calibration; here they are threads,
 * each with a checkpoint of its own.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/build/suite.h"
#include "tests/convert/learners.h"
#include "tests/validate/validate_fable.h"

#define PEERS_MOST 5

/* ---- A machine with little memory ---- */

static long n_pages; /* 0: as many as there are */

/* Stands before the system's. */
long
sysconf(int name)
{
    long (*real)(int);
    void *found = dlsym(RTLD_NEXT, "sysconf");

    memcpy(&real, &found, sizeof(real));
    return name == _SC_PHYS_PAGES && n_pages > 0 ? n_pages : real(name);
}

/* ---- What they tell each other ---- */

/* All come, the one who has the bytes shows where they are, all copy them, and
 * all go. */
struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    unsigned n, n_here, round;
    bool is_broken; /* somebody will not come any more */
    const void *bytes;
    size_t n_bytes;
};

struct peer {
    struct meeting *meeting;
    struct lmq_peers peers;
    const char *from, *tokenizer, *to;
    struct lmq_convert_options options;
    int left; /* until it stops; 0: never */
    enum lmq_status status;
    struct lmq_error err;
};

/* With the lock. False: it will not be. */
static bool
wait_for_all(struct meeting *meeting)
{
    unsigned round = meeting->round;

    if (++meeting->n_here == meeting->n) {
        meeting->n_here = 0;
        meeting->round++;
        pthread_cond_broadcast(&meeting->moved);
    }
    while (meeting->round == round && !meeting->is_broken)
        pthread_cond_wait(&meeting->moved, &meeting->lock);
    return meeting->round != round;
}

static int
share(void *context, unsigned from, void *bytes, size_t n_bytes)
{
    struct peer *peer = context;
    struct meeting *meeting = peer->meeting;
    bool is_fine = true;

    pthread_mutex_lock(&meeting->lock);
    if (from == peer->peers.rank) {
        meeting->bytes = bytes;
        meeting->n_bytes = n_bytes;
    }
    is_fine = wait_for_all(meeting) && meeting->n_bytes == n_bytes;
    if (is_fine && from != peer->peers.rank)
        memcpy(bytes, meeting->bytes, n_bytes);
    is_fine = is_fine && wait_for_all(meeting);
    pthread_mutex_unlock(&meeting->lock);
    return is_fine ? 0 : -1;
}

static void *
run_peer(void *context)
{
    struct peer *peer = context;
    const struct lmq_open_options open = {.tokenizer = peer->tokenizer};
    const struct lmq_progress progress = {.report = stop_when_due,
                                          .context = &peer->left};
    struct lmq_checkpoint *checkpoint = NULL;

    peer->status =
        lmq_checkpoint_open(peer->from, &open, &checkpoint, &peer->err);
    if (peer->status == LMQ_OK)
        peer->status = lmq_convert(checkpoint, peer->to, &peer->options,
                                   &progress, NULL, &peer->err);
    lmq_checkpoint_close(checkpoint);
    if (peer->status != LMQ_OK) {
        pthread_mutex_lock(&peer->meeting->lock);
        peer->meeting->is_broken = true;
        pthread_cond_broadcast(&peer->meeting->moved);
        pthread_mutex_unlock(&peer->meeting->lock);
    }
    return NULL;
}

/* What they try to do together. */
struct together {
    const char *from, *tokenizer;
    struct lmq_convert_options options;
    unsigned n, stops_at; /* processes; the number of who stops, */
    int left;             /* after so many calls; 0: nobody */
    const char *expected; /* NULL, or what one of them complains of */
    const char *other_text; /* of the last of them; or NULL */
};

/* False: somebody was stopped, and so all. */
static bool
calibrate_together(const struct together *together)
{
    struct meeting meeting = {.n = together->n};
    struct peer peers[PEERS_MOST] = {0};
    pthread_t threads[PEERS_MOST];
    const char *to = in_folder("many/m.lmq");
    bool is_done = true, is_stopped = false, is_expected = false;

    pthread_mutex_init(&meeting.lock, NULL);
    pthread_cond_init(&meeting.moved, NULL);
    for (unsigned i = 0; i < together->n; i++) {
        struct peer *peer = &peers[i];
        *peer = (struct peer){.meeting = &meeting,
                              .from = together->from,
                              .tokenizer = together->tokenizer,
                              .to = to,
                              .options = together->options};
        peer->peers = (struct lmq_peers){i, together->n, share, peer};
        peer->options.peers = &peer->peers;
        peer->options.part = i + 1;
        peer->options.n_parts = together->n;
        peer->left = i == together->stops_at ? together->left : 0;
        if (i + 1 == together->n && together->other_text != NULL)
            peer->options.calibration = &together->other_text;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_peer, peer), 0);
    }
    for (unsigned i = 0; i < together->n; i++) {
        pthread_join(threads[i], NULL);
        is_done &= peers[i].status == LMQ_OK;
        is_stopped |= peers[i].status == LMQ_ERR_CANCELLED;
        is_expected |=
            together->expected != NULL &&
            strstr(peers[i].err.message, together->expected) != NULL;
    }
    for (unsigned i = 0; i < together->n; i++)
        ck_assert_msg(is_stopped || is_expected || is_done ||
                          peers[i].status == LMQ_OK ||
                          strstr(peers[i].err.message, "be reached") != NULL,
                      "%u of %u: %s", i + 1, together->n,
                      peers[i].err.message);
    ck_assert(is_stopped || is_expected || is_done);
    ck_assert(is_expected || together->expected == NULL);
    pthread_cond_destroy(&meeting.moved);
    pthread_mutex_destroy(&meeting.lock);
    return is_done;
}

/* ---- The same of one ---- */

static struct lmq_report *
calibrate_alone(const struct together *together)
{
    const struct lmq_open_options open = {.tokenizer = together->tokenizer};
    struct lmq_convert_options options = together->options;
    struct lmq_checkpoint *checkpoint;
    struct lmq_report *report;
    struct lmq_error err;

    options.n_parts = together->n;
    ck_assert_int_eq(
        lmq_checkpoint_open(together->from, &open, &checkpoint, &err), LMQ_OK);
    ck_assert_msg(lmq_convert(checkpoint, in_folder("one/m.lmq"), &options,
                              NULL, &report, &err) == LMQ_OK,
                  "%s", err.message);
    lmq_checkpoint_close(checkpoint);
    return report;
}

static struct lmq_report *
seal(const struct together *together)
{
    const struct lmq_open_options open = {.tokenizer = together->tokenizer};
    const struct lmq_seal_options options = {.size = sizeof(options),
                                             .open = &open};
    struct lmq_report *report;
    struct lmq_error err = {0};

    ck_assert_msg(lmq_seal(in_folder("many"), &options, NULL, &report, &err) ==
                      LMQ_OK,
                  "%s", err.message);
    return report;
}

static void
assert_same_report(const struct lmq_report *a, const struct lmq_report *b,
                   const char *key)
{
    struct lmq_error err;
    char *x, *y;

    ck_assert_int_eq(
        lmq_report_text(lmq_report_at(a, key), LMQ_REPORT_JSON, &x, &err),
        LMQ_OK);
    ck_assert_int_eq(
        lmq_report_text(lmq_report_at(b, key), LMQ_REPORT_JSON, &y, &err),
        LMQ_OK);
    ck_assert_str_eq(x, y);
    lmq_text_free(x);
    lmq_text_free(y);
}

/* The files, and then they are removed; what is said of tensors. */
static void
assert_same_sets(const struct together *together)
{
    struct lmq_report *one = calibrate_alone(together);
    struct lmq_report *many = seal(together);
    char name[64];

    assert_same_report(one, many, "tensors");
    assert_same_report(one, many, "calibration");
    assert_same_report(one, many, "notes");
    lmq_report_free(one);
    lmq_report_free(many);
    for (unsigned i = 1; i <= together->n; i++) {
        size_t n_a, n_b;
        snprintf(name, sizeof(name), "one/m-%05u-of-%05u.lmq", i, together->n);
        unsigned char *a = read_file(in_folder(name), &n_a);
        remove(in_folder(name));
        snprintf(name, sizeof(name), "many/m-%05u-of-%05u.lmq", i,
                 together->n);
        unsigned char *b = read_file(in_folder(name), &n_b);
        remove(in_folder(name));
        ck_assert_msg(n_a == n_b && memcmp(a, b, n_a) == 0, "%s is different",
                      name);
        free(a);
        free(b);
    }
}

static struct together
usual_together(const char *const *text, unsigned n)
{
    mkdir(in_folder("one"), 0777);
    mkdir(in_folder("many"), 0777);
    return (struct together){
        .from = fable("model.safetensors"),
        .tokenizer = fable("tokenizer.json"),
        .n = n,
        .options = {.size = sizeof(struct lmq_convert_options),
                    .calibration = text,
                    .n_calibration = 1,
                    .calibration_tokens = 700,
                    .context = 100,
                    .encoding = "q4",
                    .threads = 1},
    };
}

/* ---- Tests ---- */

START_TEST(any_number_writes_the_same)
{
    static const struct {
        unsigned n;
        int threads, rotates;
        const char *encoding, *layout, *method;
    } cases[] = {
        {2, 1, 0, "q4", NULL, NULL},      {3, 2, 1, "q8", "rows", NULL},
        {5, 1, 0, "q6", NULL, NULL},      {1, 2, 0, "q5", NULL, NULL},
        {4, 1, 0, "q8", NULL, "search"},
    };
    const char *text = fable("held-out-b.txt");

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct together together = usual_together(&text, cases[i].n);
        together.options.threads = cases[i].threads;
        together.options.rotates = cases[i].rotates;
        together.options.encoding = cases[i].encoding;
        together.options.layout = cases[i].layout;
        together.options.method = cases[i].method;
        ck_assert(calibrate_together(&together));
        assert_same_sets(&together);
    }
}
END_TEST

/* Each writes it, and goes on from there with the others. */
START_TEST(all_write_the_same_text)
{
    struct together together = usual_together(NULL, 3);

    together.options.n_calibration = 0;
    together.options.writes_text = 1;
    ck_assert(calibrate_together(&together));
    assert_same_sets(&together);
}
END_TEST

/* More inputs than are noted one by one. */
START_TEST(what_saw_little_is_told)
{
    const char *text = in_folder("short.txt");
    struct together together = usual_together(&text, 2);

    write_file(text, "Once upon a time", 16);
    ck_assert(calibrate_together(&together));
    assert_same_sets(&together);
}
END_TEST

/* One is stopped, and with it all; the next ones go on. */
START_TEST(what_all_began_all_go_on_with)
{
    const char *text = fable("held-out-b.txt");
    struct together together = usual_together(&text, 3);
    int n_stops = 0;

    do {
        together.stops_at = (unsigned)n_stops % 3;
        together.left = 23 * ++n_stops;
    } while (!calibrate_together(&together));
    ck_assert_int_gt(n_stops, 3);
    assert_same_sets(&together);
}
END_TEST

static struct together
family_together(const struct family *family, const char *const *text)
{
    struct together together = usual_together(text, 2);

    save_learner(family);
    together.from = in_folder("family");
    together.tokenizer = in_folder("tokenizer.bin");
    together.options.context = 0;
    together.options.forces_tokenizer = 1;
    together.options.group_size = 32;
    return together;
}

START_TEST(every_family_is_shared)
{
    const struct family *family = family_at((size_t)_i);
    const char *text = some_text(500);

    if (family->shape.again > 0)
        return; /* nobody calibrates it */
    struct together together = family_together(family, &text);
    ck_assert(calibrate_together(&together));
    assert_same_sets(&together);
}
END_TEST

/* What an expert's matrices see may be turned for one and not for another. */
START_TEST(experts_may_see_one_thing_in_two_ways)
{
    static const char *const rules[] = {"ffn_gate=q4,group=64,rotate=yes",
                                        "ffn_up=q4,group=32"};
    const char *text = some_text(500);
    const struct family *family = family_find("mixtral");

    ck_assert_ptr_nonnull(family);
    struct together together = family_together(family, &text);
    together.options.rules = rules;
    together.options.n_rules = 2;
    ck_assert(calibrate_together(&together));
    assert_same_sets(&together);
}
END_TEST

/* The last one has another text; or a part was changed behind their backs. */
START_TEST(all_are_about_the_same)
{
    const char *text = fable("held-out-b.txt");
    struct together together = usual_together(&text, 2);
    size_t n;

    together.other_text = fable("held-out-a.txt");
    together.expected = "process 2 of 2 has another source, text or options";
    ck_assert(!calibrate_together(&together));
    together.other_text = together.expected = NULL;
    ck_assert(calibrate_together(&together));
    unsigned char *part = read_file(in_folder("many/m-00001-of-00002.lmq.part"),
                                    &n);
    for (size_t i = n / 2; i < n / 2 + 20000; i++)
        part[i] ^= 1;
    write_file(in_folder("many/m-00001-of-00002.lmq.part"), part, n);
    free(part);
    remove(in_folder("many/m-00002-of-00002.lmq.part"));
    remove(in_folder("many/m-00002-of-00002.lmq.journal"));
    together.expected = "is not as it was written before";
    ck_assert(!calibrate_together(&together));
}
END_TEST

/* Whether one process has the memory; it goes no further. */
static bool
fits_alone(const struct together *together)
{
    struct meeting meeting = {.n = 1};
    struct peer peer = {.meeting = &meeting,
                        .from = together->from,
                        .tokenizer = together->tokenizer,
                        .to = in_folder("many/m.lmq"),
                        .options = together->options,
                        .left = 1};

    pthread_mutex_init(&meeting.lock, NULL);
    pthread_cond_init(&meeting.moved, NULL);
    run_peer(&peer);
    pthread_cond_destroy(&meeting.moved);
    pthread_mutex_destroy(&meeting.lock);
    ck_assert_msg(peer.status == LMQ_ERR_CANCELLED ||
                      strstr(peer.err.message, "than the 0.0 GB that there") !=
                          NULL,
                  "%s", peer.err.message);
    return peer.status == LMQ_ERR_CANCELLED;
}

/* Before the work: what is enough for one is not for two, who show each other
 * what they see. */
START_TEST(memory_is_asked_for)
{
    const char *text = fable("held-out-b.txt");
    struct together together = usual_together(&text, 2);
    long too_few = 1, enough = 1L << 20;

    while (enough - too_few > 1) {
        n_pages = (too_few + enough) / 2;
        if (fits_alone(&together))
            enough = n_pages;
        else
            too_few = n_pages;
    }
    n_pages = enough;
    together.expected = "for what is seen in a window";
    ck_assert(!calibrate_together(&together));
    n_pages = 0;
    together.expected = NULL;
    ck_assert(calibrate_together(&together));
}
END_TEST

START_TEST(misuse_is_refused)
{
    const char *text = fable("held-out-b.txt");
    struct together together = usual_together(&text, 2);
    struct lmq_convert_options *options = &together.options;
    struct lmq_peers peers = {.rank = 1, .n = 2, .share = share};
    struct lmq_checkpoint *checkpoint;
    struct lmq_error err;

    options->peers = &peers;
    ck_assert_int_eq(
        lmq_checkpoint_open(together.from, NULL, &checkpoint, &err), LMQ_OK);
    for (int i = 0; i < 5; i++) {
        options->n_parts = i == 0 ? 3 : 2;
        options->part = i == 1 ? 1 : 2;
        options->n_calibration = i != 2;
        options->calibration_tokens = i == 2 ? 0 : 700;
        options->context = i == 2 ? 0 : 100;
        peers.rank = i == 3 ? 2 : 1;
        peers.share = i == 4 ? NULL : share;
        err = (struct lmq_error){0};
        ck_assert_msg(lmq_convert(checkpoint, in_folder("many/m.lmq"), options,
                                  NULL, NULL, &err) == LMQ_ERR_ARG &&
                          strstr(err.message, ".peers") != NULL,
                      "case %d: %s", i, err.message);
    }
    lmq_checkpoint_close(checkpoint);
}
END_TEST

int
main(int argc, char **argv)
{
    const TTest *const of_one[] = {any_number_writes_the_same,
                                   all_write_the_same_text,
                                   what_saw_little_is_told,
                                   what_all_began_all_go_on_with,
                                   experts_may_see_one_thing_in_two_ways,
                                   all_are_about_the_same,
                                   memory_is_asked_for,
                                   misuse_is_refused};
    const TTest *const of_all[] = {every_family_is_shared};
    size_t first, end;

    family_range(argc, argv, &first, &end);
    int failed = argc > 1 ? 0 : RUN_SUITE("peers", of_one);
    return RUN_SUITE_OVER("families", of_all, first, end) | failed;
}
