/*
 * options.c - structures of options that callers of other releases fill in.
 */
#include "config.h"

#include "base/options.h"

#include <string.h>

#include "base/error.h"

/* No structure becomes that large; memory that was never set says so. */
#define SIZE_MAX_SANE 4096

static enum lmq_status
fail_unknown(const char *name, size_t size, size_t own_size,
             struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_ARG, 0,
             "%s has %zu bytes and sets something behind the %zu that this "
             "library knows",
             name, size, own_size);
    lmq_hint(err, "the program was built for a newer liblmquant than %s",
             lmq_version());
    return LMQ_ERR_ARG;
}

enum lmq_status
lmq_options_take(void *own, size_t own_size, size_t first, const void *given,
                 const char *name, struct lmq_error *err)
{
    const unsigned char *bytes = given;
    size_t size = 0;

    memset(own, 0, own_size);
    if (given != NULL)
        memcpy(&size, given, sizeof(size));
    if (size == 0)
        size = first;
    if (size < sizeof(size) || size > SIZE_MAX_SANE) {
        lmq_fail(err, LMQ_ERR_ARG, 0, "%s says that it has %zu bytes", name,
                 size);
        lmq_hint(err, "set all of it to zero and .size to its sizeof before "
                      "the other members");
        return LMQ_ERR_ARG;
    }
    if (given != NULL) {
        for (size_t i = own_size; i < size; i++)
            if (bytes[i] != 0)
                return fail_unknown(name, size, own_size, err);
        memcpy(own, given, size < own_size ? size : own_size);
    }
    memcpy(own, &own_size, sizeof(own_size));
    return LMQ_OK;
}
