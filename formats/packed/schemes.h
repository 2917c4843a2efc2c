/*
 * schemes.h - the schemes that can be read, a function and a file for each.
 *
 * It is asked about a tensor whose name has the ending of its row in packed.c.
 * Either it joins the tensor and its parts to a matrix, or it calls
 * lmq_packer_refuse(), or it leaves all as it is, if the tensor is not of its
 * kind; what is of its kind and wrong is LMQ_ERR_FORMAT.
 */
#ifndef LMQ_FORMATS_PACKED_SCHEMES_H
#define LMQ_FORMATS_PACKED_SCHEMES_H

#include "formats/packed/affine.h"

typedef enum lmq_status lmq_scheme_join(struct lmq_packer *packer,
                                        struct lmq_tensor *tensor,
                                        struct lmq_error *err);

/* (gptq.c) Of either, by what the configuration says. */
lmq_scheme_join lmq_autoround_join;
lmq_scheme_join lmq_awq_join;
lmq_scheme_join lmq_bitnet_join;
lmq_scheme_join lmq_bnb4_join;
lmq_scheme_join lmq_bnb8_join;
lmq_scheme_join lmq_compressed_join;
lmq_scheme_join lmq_fp4_join;
lmq_scheme_join lmq_fp8_join;
lmq_scheme_join lmq_gptq_join;
lmq_scheme_join lmq_hqq_join;
lmq_scheme_join lmq_int8_join; /* (compressed.c) */
lmq_scheme_join lmq_mlx_join;
lmq_scheme_join lmq_mxfp4_join;
lmq_scheme_join lmq_nvfp4_join; /* (fp4.c) */
lmq_scheme_join lmq_torchao_join;

#endif
