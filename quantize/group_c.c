/*
 * group_c.c - group_body.h compiled for the compiler's baseline.
 */
#include "config.h"

#define LMQ_ROW_NAME lmq_quantize_row_c
#define LMQ_SCALE_NAME lmq_quant_weighted_scale_c
#define LMQ_STEPS_NAME lmq_quant_steps
#define LMQ_ROW_WIDTH 4
#include "quantize/group_body.h"
