/*
 * set_name.c - the name of a set, of all that stands in it; and that of a plan,
 * before there is anything.
 *
 * The first is the same whoever wrote the members, and whether they were
 * written from a checkpoint or cut from a container. The second tells whether
 * two processes work on the same.
 */
#include "config.h"

#include "convert/set_name.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/error.h"
#include "base/size.h"

/* FNV-1a of 128 bits (RFC 9923). It need not withstand anybody, only tell
 * conversions apart: what is damaged or forged, checksums and signatures
 * find. */
struct digest {
    uint32_t words[4]; /* the least first */
};

static void
digest_begin(struct digest *digest)
{
    *digest = (struct digest){
        {0x6295c58du, 0x62b82175u, 0x07bb0142u, 0x6c62272eu}};
}

static void
digest_add(struct digest *digest, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint32_t *w = digest->words;

    for (size_t i = 0; i < n; i++) {
        w[0] ^= p[i];
        /* Times 2^88 + 0x13b. */
        uint64_t carry = 0;
        const uint32_t high[4] = {0, 0, w[0] << 24, w[1] << 24 | w[0] >> 8};
        for (int j = 0; j < 4; j++) {
            carry += (uint64_t)w[j] * 0x13b + high[j];
            w[j] = (uint32_t)carry;
            carry >>= 32;
        }
    }
}

static void
digest_add_number(struct digest *digest, uint64_t number)
{
    unsigned char bytes[8];

    lmq_store_u64le(bytes, number);
    digest_add(digest, bytes, sizeof(bytes));
}

static enum lmq_status
digest_member(struct digest *digest, const struct lmq_plan_member *member,
              struct lmq_error *err)
{
    unsigned char *bytes;
    size_t size;
    enum lmq_status status = lmq_directory_store(
        member->records, member->n_records, &bytes, &size, err);

    if (status != LMQ_OK)
        return status;
    digest_add_number(digest, size);
    digest_add(digest, bytes, size);
    free(bytes);
    for (size_t i = 0; i < member->n_contents; i++) {
        const struct lmq_content *content = &member->contents[i];
        digest_add_number(digest, content->size);
        digest_add(digest, content->name, strlen(content->name) + 1);
        digest_add_number(digest,
                          lmq_crc32(0, content->bytes, content->size));
    }
    return LMQ_OK;
}

enum lmq_status
lmq_plan_identify(const struct lmq_plan *plan, unsigned char name[LMQ_SET_ID],
                  struct lmq_error *err)
{
    struct digest digest;
    enum lmq_status status = LMQ_OK;

    digest_begin(&digest);
    digest_add_number(&digest, plan->n_members);
    for (uint32_t i = 0; i < plan->n_members && status == LMQ_OK; i++)
        status = digest_member(&digest, &plan->members[i], err);
    for (int i = 0; i < 4; i++)
        lmq_store_u32le(name + 4 * i,
                        digest.words[i] | (i == 0)); /* zeros are no name */
    return status;
}

enum lmq_status
lmq_plan_name_set(struct lmq_plan *plan, struct lmq_error *err)
{
    unsigned char name[LMQ_SET_ID];
    enum lmq_status status = lmq_plan_identify(plan, name, err);

    for (uint32_t i = 0; i < plan->n_members; i++)
        memcpy(plan->members[i].layout.set_id, name, LMQ_SET_ID);
    return status;
}

/* The plan of a model and of the same one after more training is the same;
 * its weights are not. Of each file so many samples are looked at, and so all
 * of a small one. */
#define SAMPLES 64
#define SAMPLE ((size_t)4096)

static enum lmq_status
digest_source(struct digest *digest, struct lmq_input *input,
              struct lmq_error *err)
{
    uint64_t size = lmq_input_size(input), at = 0;
    unsigned char bytes[SAMPLE];
    enum lmq_status status = LMQ_OK;

    digest_add_number(digest, size);
    for (uint64_t i = 0; i < SAMPLES && at < size && status == LMQ_OK; i++) {
        size_t n = (size_t)lmq_u64_min(SAMPLE, size - at);
        status = lmq_input_read(input, at, bytes, n, err);
        if (status == LMQ_OK)
            digest_add_number(digest, lmq_crc32(0, bytes, n));
        at += size <= SAMPLES * SAMPLE ? SAMPLE
                                       : (size - SAMPLE) / (SAMPLES - 1);
    }
    return status;
}

enum lmq_status
lmq_plan_sample(struct lmq_input *input, unsigned char name[LMQ_SET_ID],
                struct lmq_error *err)
{
    struct digest digest;

    digest_begin(&digest);
    enum lmq_status status = digest_source(&digest, input, err);
    for (int i = 0; i < 4; i++)
        lmq_store_u32le(name + 4 * i, digest.words[i]);
    return status;
}
