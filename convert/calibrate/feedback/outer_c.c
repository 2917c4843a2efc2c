/*
 * outer_c.c - outer_body.h compiled for the compiler's baseline.
 */
#include "config.h"

#define LMQ_OUTER_NAME lmq_outer_add_c
#define LMQ_OUTER_WIDTH 2
#include "convert/calibrate/feedback/outer_body.h"
