/*
 * name_table.c - what the values of an option are called.
 */
#include "config.h"

#include "base/text/name_table.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

const struct lmq_name *
lmq_names_find(const struct lmq_name *names, const char *text)
{
    while (text != NULL && names->name != NULL) {
        if (strcmp(names->name, text) == 0)
            return names;
        names++;
    }
    return NULL;
}

enum lmq_status
lmq_names_parse(const struct lmq_name *names, const char *option,
                const char *text, int *value, struct lmq_error *err)
{
    const struct lmq_name *name = lmq_names_find(names, text);
    char list[128];

    if (name != NULL)
        *value = name->value;
    else if (text != NULL)
        return lmq_fail(err, LMQ_ERR_ARG, 0, ".%s is '%.40s', expected %s",
                        option, text,
                        lmq_names_list(names, "'", list, sizeof(list)));
    return LMQ_OK;
}

const char *
lmq_names_of(const struct lmq_name *names, int64_t value)
{
    while (names->name != NULL && names->value != value)
        names++;
    return names->name;
}

const char *
lmq_names_list(const struct lmq_name *names, const char *quotes, char *list,
               size_t size)
{
    size_t used = 0;

    list[0] = '\0';
    for (size_t i = 0; names[i].name != NULL && used < size; i++) {
        const char *joint = i == 0                       ? ""
                            : names[i + 1].name == NULL ? " or "
                                                         : ", ";
        used += (size_t)snprintf(list + used, size - used, "%s%s%s%s", joint,
                                 quotes, names[i].name, quotes);
    }
    return list;
}
