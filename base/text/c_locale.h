/*
 * c_locale.h - numbers as text with a point, whatever the program has chosen.
 *
 * A program around the library may have called setlocale(), and then printf()
 * writes 0,5. What is data is read and written between these two, of this
 * thread alone.
 */
#ifndef LMQ_BASE_TEXT_C_LOCALE_H
#define LMQ_BASE_TEXT_C_LOCALE_H

#include <locale.h>
#include <stdarg.h>
#include <stddef.h>

#include "lmquant.h"

/* What lmq_c_locale_leave() wants to have back. */
locale_t lmq_c_locale_enter(void);
void lmq_c_locale_leave(locale_t former);

/* vsnprintf() between the two. */
int lmq_c_vsnprintf(char *text, size_t size, const char *format, va_list args)
    LMQ_PRINTF(3, 0);

#endif
