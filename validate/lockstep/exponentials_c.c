/*
 * exponentials_c.c - exponentials_body.h compiled for the compiler's baseline.
 */
#include "config.h"

#define LMQ_EXP_NAME lmq_exponentials_c
#define LMQ_EXP_WIDTH 2
#include "validate/lockstep/exponentials_body.h"
