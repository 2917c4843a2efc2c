/*
 * set_name.c - the name of a set, of all that stands in it.
 *
 * So it is the same whoever wrote the members, and whether they were written
 * from a checkpoint or cut from a container.
 */
#include "config.h"

#include "convert/set_name.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"

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
lmq_plan_name_set(struct lmq_plan *plan, struct lmq_error *err)
{
    struct digest digest;
    enum lmq_status status = LMQ_OK;

    digest_begin(&digest);
    digest_add_number(&digest, plan->n_members);
    for (uint32_t i = 0; i < plan->n_members && status == LMQ_OK; i++)
        status = digest_member(&digest, &plan->members[i], err);
    digest.words[0] |= 1; /* zeros are no name */
    for (uint32_t i = 0; i < plan->n_members; i++)
        for (int j = 0; j < 4; j++)
            lmq_store_u32le(plan->members[i].layout.set_id + 4 * j,
                            digest.words[j]);
    return status;
}
