/*
 * checkasm_memory.h - random numbers of the nasty kind, in guarded arrays.
 */
#ifndef LMQ_TESTS_RUNTIME_CHECKASM_MEMORY_H
#define LMQ_TESTS_RUNTIME_CHECKASM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Random numbers ---- */

extern uint64_t checkasm_state;

uint32_t random_u32(void);
size_t random_below(size_t n);
float random_float(void); /* from -1 to 1 */

/* What the kernels meet, and what they should never meet. */
enum pattern {
    PLAIN,
    EXTREME, /* +-32639 and nothing else */
    LARGEST_SUMS, /* all -32639, and the least whole number or the most */
    LOW_128, /* integers whose low half is -128, and some such numbers */
    ZERO_GROUPS,
    DENORMAL,
    HUGE_NUMBERS,
    NONFINITE,
    PATTERN_COUNT
};

float pattern_float(enum pattern pattern, size_t i);

/* ---- Guarded memory ---- */

struct buffer {
    unsigned char *map;
    size_t map_bytes;
    unsigned char *data; /* n_bytes, then an unreadable page */
    size_t n_bytes;
};

struct buffer buffer_new(size_t n_bytes);
struct buffer buffer_floats(size_t n, enum pattern pattern);
struct buffer buffer_copy(const struct buffer *from);
float *floats(const struct buffer *b);
void buffer_free(struct buffer *b);

/* ---- Comparing ---- */

/* NaNs are equal, whatever their bits. */
bool same_float(float a, float b);
bool same_floats(const float *a, const float *b, size_t n);

/* Equal, and the bytes in front are untouched; frees both. */
bool same_buffers(struct buffer *a, struct buffer *b, bool is_float);

#endif
