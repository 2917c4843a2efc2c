/*
 * crc32.h - CRC-32 as zlib has it.
 */
#ifndef LMQ_BASE_CRC32_H
#define LMQ_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Goes on from a sum, 0 at the beginning, over memory of any length. */
uint32_t lmq_crc32(uint32_t crc, const void *bytes, size_t n);

#endif
