/*
 * exponentials_avx512.c - exponentials_body.h compiled for AVX-512.
 */
#include "config.h"

#define LMQ_EXP_NAME lmq_exponentials_avx512
#define LMQ_EXP_WIDTH 8
#include "validate/lockstep/exponentials_body.h"
