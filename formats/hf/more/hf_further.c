/*
 * hf_further.c - what the families of families_further.c do in config.json
 * beside their rows: BitNet.
 */
#include "config.h"

#include "formats/hf/more/hf_further.h"

#include "formats/hf/hf_reader.h"

/* ---- BitNet ---- */

void
lmq_hf_begin_bitnet(struct lmq_hf_config *config)
{
    config->hparams->has_sub_norms = true;
}
