/*
 * peers.h - what the processes of a calibration tell each other.
 */
#ifndef LMQ_CONVERT_CALIBRATE_PEERS_H
#define LMQ_CONVERT_CALIBRATE_PEERS_H

#include "base/error.h"

/* Who is alone has no peers; then nothing is shared. */
static inline unsigned
lmq_peers_n(const struct lmq_peers *peers)
{
    return peers == NULL ? 1 : peers->n;
}

static inline unsigned
lmq_peers_rank(const struct lmq_peers *peers)
{
    return peers == NULL ? 0 : peers->rank;
}

/* What stands at `bytes` of the process `from` stands there in all. */
static inline enum lmq_status
lmq_peers_share(const struct lmq_peers *peers, unsigned from, void *bytes,
                size_t n, struct lmq_error *err)
{
    if (lmq_peers_n(peers) == 1 || n == 0 ||
        peers->share(peers->context, from, bytes, n) == 0)
        return LMQ_OK;
    return lmq_fail(err, LMQ_ERR_IO, 0,
                    "process %u of %u cannot be reached any more", from + 1,
                    peers->n);
}

#endif
