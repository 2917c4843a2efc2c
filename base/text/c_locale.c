/*
 * c_locale.c - the locale of data, made once.
 */
#include "config.h"

#include "base/text/c_locale.h"

#include <pthread.h>
#include <stdio.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t plain;

static void
make(void)
{
    plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
}

/* Without memory for it the program's own stays. */
locale_t
lmq_c_locale_enter(void)
{
    pthread_once(&once, make);
    return uselocale(plain);
}

void
lmq_c_locale_leave(locale_t former)
{
    uselocale(former);
}

int
lmq_c_vsnprintf(char *text, size_t size, const char *format, va_list args)
{
    locale_t former = lmq_c_locale_enter();
    int n = vsnprintf(text, size, format, args);

    lmq_c_locale_leave(former);
    return n;
}
