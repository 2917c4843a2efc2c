/*
 * families_further.c - families that differ from a Llama in one thing that few
 * others have; families.c says what holds for all.
 */
#include "config.h"

#include "formats/families/family_words.h"

#include "formats/gguf/gguf_special.h"
#include "formats/hf/more/hf_further.h"

/* ---- The table ---- */

const struct lmq_family lmq_further_families[] = {
    /* In GGUF it has SiLU, if the file does not say. */
    {.name = "bitnet", .activation = LMQ_ACTIVATION_RELU2,
     .hf = {.classes = {{"BitNetForCausalLM", "bitnet", NULL, false}},
            RMS_EPS(1e-5), .context = 2048, .n_kv_heads = 5, .theta = 500000,
            .keys = {sizes, head_dim}, .begin = lmq_hf_begin_bitnet, BIASES},
     .gguf = {.name = "bitnet", .keys = LLAMA_KEYS, .says_activation = true,
              .begin = lmq_gguf_begin_bitnet, .head = LMQ_GGUF_HEAD_NEVER}},
};

const size_t lmq_n_further_families =
    sizeof(lmq_further_families) / sizeof(lmq_further_families[0]);
