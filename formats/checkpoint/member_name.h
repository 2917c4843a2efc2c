/*
 * member_name.h - names of files that make one model together:
 * "model-00002-of-00003.lmq".
 */
#ifndef LMQ_FORMATS_CHECKPOINT_MEMBER_NAME_H
#define LMQ_FORMATS_CHECKPOINT_MEMBER_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>


struct lmq_member_name {
    size_t n_stem;      /* of the path: what is before "-00002" */
    const char *ending; /* of the path: ".lmq" */
    uint32_t member, n_members;
};

/* False if the path is none of such a file. */
bool lmq_member_name_parse(const char *path, struct lmq_member_name *name);

/* Whether the entry of a folder is called as a member of that set is. */
bool lmq_member_name_is_of(const char *entry, const char *stem, size_t n_stem,
                           const char *ending, struct lmq_member_name *name);

/* The path of a member, of n_stem characters of `stem`; the caller frees it;
 * NULL without memory. */
char *lmq_member_name_make(const char *stem, size_t n_stem, uint32_t member,
                           uint32_t n_members, const char *ending);

#endif
