/*
 * zip.h - the members of a zip archive, for reading.
 *
 * Everything that the archive says is checked when it is opened: the central
 * directory lies where it should, each member's local header agrees with it,
 * and no two members share a byte.
 */
#ifndef LMQ_FORMATS_TORCH_ZIP_H
#define LMQ_FORMATS_TORCH_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/files/file.h"
#include "lmquant.h"

struct lmq_zip_member {
    const char *name;
    bool is_deflated; /* else it stands as it is */
    uint32_t crc;
    uint64_t size, packed_size;
    uint64_t offset; /* of its bytes in the file */
};

struct lmq_zip {
    struct lmq_input *input; /* borrowed */
    struct lmq_zip_member *members; /* by name */
    size_t n_members;
    char *names;
};

/* The archive fills the whole file. Closed with lmq_zip_close(), which takes
 * NULL; the input must outlive it. */
enum lmq_status lmq_zip_open(struct lmq_input *input, struct lmq_zip **out,
                             struct lmq_error *err);
void lmq_zip_close(struct lmq_zip *zip);

/* NULL if there is none. */
const struct lmq_zip_member *lmq_zip_find(const struct lmq_zip *zip,
                                          const char *name);

/* All bytes of a member of at most `most`, inflated and compared with its
 * checksum; freed with free(). There is a 0 behind them. */
enum lmq_status lmq_zip_load(const struct lmq_zip *zip,
                             const struct lmq_zip_member *member, size_t most,
                             unsigned char **out, struct lmq_error *err);

#endif
