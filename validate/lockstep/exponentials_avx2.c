/*
 * exponentials_avx2.c - exponentials_body.h compiled for AVX2.
 */
#include "config.h"

#define LMQ_EXP_NAME lmq_exponentials_avx2
#define LMQ_EXP_WIDTH 4
#include "validate/lockstep/exponentials_body.h"
