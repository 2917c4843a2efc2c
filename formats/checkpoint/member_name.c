/*
 * member_name.c - names of files that make one model together.
 *
 * NAME-00002-of-00005.ENDING, as Hugging Face and llama.cpp number their
 * shards, too. Numbers count from 1.
 */
#include "config.h"

#include "formats/checkpoint/member_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/path.h"

#define N_DIGITS 5
#define N_MIDDLE 4 /* "-of-" */
#define N_TAIL (1 + N_DIGITS + N_MIDDLE + N_DIGITS)

static bool
read_number(const char *text, uint32_t *number)
{
    *number = 0;
    for (size_t i = 0; i < N_DIGITS; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        *number = 10 * *number + (uint32_t)(text[i] - '0');
    }
    return true;
}

/* Whether the numbers make sense is not asked here: what the file says of
 * itself is compared with them. */
bool
lmq_member_name_parse(const char *path, struct lmq_member_name *name)
{
    const char *base = lmq_path_base(path);
    const char *ending = strrchr(base, '.');

    if (ending == NULL)
        ending = base + strlen(base);
    if (ending - base <= N_TAIL)
        return false;
    const char *tail = ending - N_TAIL;
    *name = (struct lmq_member_name){.n_stem = (size_t)(tail - path),
                                     .ending = ending};
    return tail[0] == '-' && read_number(tail + 1, &name->member) &&
           strncmp(tail + 1 + N_DIGITS, "-of-", N_MIDDLE) == 0 &&
           read_number(ending - N_DIGITS, &name->n_members);
}

bool
lmq_member_name_is_of(const char *entry, const char *stem, size_t n_stem,
                      const char *ending, struct lmq_member_name *name)
{
    return lmq_member_name_parse(entry, name) && name->n_stem == n_stem &&
           memcmp(entry, stem, n_stem) == 0 &&
           strcmp(name->ending, ending) == 0;
}

char *
lmq_member_name_make(const char *stem, size_t n_stem, uint32_t member,
                     uint32_t n_members, const char *ending)
{
    size_t n = n_stem + N_TAIL + strlen(ending) + 1 + 10;
    char *path = malloc(n);

    if (path != NULL) /* the numbers have five digits each */
        snprintf(path, n, "%.*s-%05" PRIu32 "-of-%05" PRIu32 "%s",
                 (int)n_stem, stem, member, n_members, ending);
    return path;
}
