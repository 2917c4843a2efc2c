/*
 * group_avx2.c - group_body.h compiled for AVX2.
 */
#include "config.h"

#define LMQ_ROW_NAME lmq_quantize_row_avx2
#define LMQ_SCALE_NAME lmq_quant_weighted_scale_avx2
#define LMQ_ROW_WIDTH 8
#include "quantize/group_body.h"
