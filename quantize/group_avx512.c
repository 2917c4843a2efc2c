/*
 * group_avx512.c - group_body.h compiled for AVX-512.
 */
#include "config.h"

#define LMQ_ROW_NAME lmq_quantize_row_avx512
#define LMQ_SCALE_NAME lmq_quant_weighted_scale_avx512
#define LMQ_ROW_WIDTH 16
#include "quantize/group_body.h"
