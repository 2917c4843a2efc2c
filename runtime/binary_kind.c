/*
 * binary_kind.c - names what is no text by its first bytes.
 */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "lmquant.h"

#define HEAD 4096

struct magic {
    size_t at, n;
    const char *bytes, *kind;
};

static const struct magic magics[] = {
    {0, 4, "GGUF", "a GGUF file"},
    {0, 4, "\211LMQ", "a .lmq container"},
    {5, 5, "\0\0\0{\"", "a safetensors file"},
    {0, 4, "PK\3\4", "a zip archive or a file of PyTorch"},
    {0, 6, "\200\2\212\12\154\374", "a file of PyTorch"},
    {0, 3, "\37\213\10", "compressed by gzip"},
    {4, 6, "1AY&SY", "compressed by bzip2"},
    {0, 6, "\3757zXZ", "compressed by xz"},
    {0, 4, "\50\265\57\375", "compressed by zstd"},
    {0, 6, "7z\274\257\47\34", "a 7z archive"},
    {257, 5, "ustar", "a tar archive"},
    {0, 5, "%PDF-", "a PDF document"},
    {0, 4, "\177ELF", "a program"},
    {0, 4, "\211PNG", "a picture"},
    {0, 3, "\377\330\377", "a picture"},
    {0, 8, "\211HDF\r\n\32\n", "an HDF5 file"},
    {0, 16, "SQLite format 3", "an SQLite database"},
    {0, 4, "PAR1", "a Parquet file"},
};

/* Every other byte is 0, as of Latin letters in 16 bits each. */
static bool
is_utf16(const char *bytes, size_t n)
{
    bool is_zero[2] = {true, true}, is_other[2] = {true, true};

    for (size_t i = 0; i < n && i < HEAD; i++) {
        is_zero[i % 2] &= bytes[i] == '\0';
        is_other[i % 2] &= bytes[i] != '\0';
    }
    return n >= 4 && n % 2 == 0 &&
           ((is_zero[0] && is_other[1]) || (is_zero[1] && is_other[0]));
}

/* All of these have zero bytes soon, and a text has none: one about GGUF may
 * begin with that word. */
const char *
lmq_binary_kind(const char *bytes, size_t n)
{
    if (n == 0 || memchr(bytes, 0, n < HEAD ? n : HEAD) == NULL)
        return NULL;
    for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
        const struct magic *m = &magics[i];
        if (n >= m->at + m->n && memcmp(bytes + m->at, m->bytes, m->n) == 0)
            return m->kind;
    }
    return is_utf16(bytes, n) ? "UTF-16" : NULL;
}
