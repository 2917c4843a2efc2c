/*
 * outer_avx2.c - outer_body.h compiled for AVX2.
 */
#include "config.h"

#define LMQ_OUTER_NAME lmq_outer_add_avx2
#define LMQ_OUTER_WIDTH 4
#include "convert/calibrate/feedback/outer_body.h"
