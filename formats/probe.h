/*
 * probe.h - which format is it?
 */
#ifndef LMQ_FORMATS_PROBE_H
#define LMQ_FORMATS_PROBE_H

#include "formats/checkpoint/checkpoint.h"

/* The first bytes of a file, or that it is a folder. */
enum lmq_status lmq_probe_look(const char *path, struct lmq_probe *probe,
                               struct lmq_error *err);

/* *format becomes NULL if none says that it is its own. */
enum lmq_status lmq_probe_recognise(struct lmq_probe *probe,
                                    const struct lmq_format **format,
                                    struct lmq_error *err);

/* What it is instead, as far as that can be told. */
enum lmq_status lmq_probe_fail(const struct lmq_probe *probe,
                               struct lmq_error *err);

#endif
