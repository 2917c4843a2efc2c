/*
 * inflate.c - zlib in one call.
 */
#include "config.h"

#include "base/files/inflate.h"

#include <assert.h>
#include <limits.h>
#include <stdint.h>
#include <zlib.h>

bool
lmq_inflation_is_fair(uint64_t stored_size, uint64_t size)
{
    return size <= LMQ_FREE_INFLATION ||
           (size - LMQ_FREE_INFLATION) / LMQ_MAX_INFLATION <= stored_size;
}

enum lmq_status
lmq_inflate(const unsigned char *packed, size_t n_packed,
            unsigned char *bytes, size_t n, bool has_header)
{
    z_stream stream = {
        .next_in = (unsigned char *)(uintptr_t)packed,
        .avail_in = (uInt)n_packed,
        .next_out = bytes,
        .avail_out = (uInt)n,
    };

    assert(n_packed <= UINT_MAX && n <= UINT_MAX);
    if (inflateInit2(&stream, has_header ? MAX_WBITS : -MAX_WBITS) != Z_OK)
        return LMQ_ERR_NOMEM;
    int code = inflate(&stream, Z_FINISH);
    bool is_whole = code == Z_STREAM_END && stream.avail_in == 0 &&
                    stream.avail_out == 0;
    inflateEnd(&stream);
    if (code == Z_MEM_ERROR)
        return LMQ_ERR_NOMEM;
    return is_whole ? LMQ_OK : LMQ_ERR_FORMAT;
}
