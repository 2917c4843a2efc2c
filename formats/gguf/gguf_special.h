/*
 * gguf_special.h - what single families imply in GGUF, for their rows.
 */
#ifndef LMQ_FORMATS_GGUF_GGUF_SPECIAL_H
#define LMQ_FORMATS_GGUF_GGUF_SPECIAL_H

#include "formats/gguf/gguf_evidence.h"
#include "formats/model/hparams.h"
#include "formats/model/roles.h"

void lmq_gguf_begin_mixture(struct lmq_hparams *hparams);
void lmq_gguf_begin_gemma2(struct lmq_hparams *hparams);
void lmq_gguf_begin_gemma3(struct lmq_hparams *hparams);
void lmq_gguf_begin_gemma4(struct lmq_hparams *hparams);
void lmq_gguf_begin_llama4(struct lmq_hparams *hparams);
void lmq_gguf_begin_ling3(struct lmq_hparams *hparams);
void lmq_gguf_begin_lightning(struct lmq_hparams *hparams);
void lmq_gguf_finish_lightning(struct lmq_hparams *hparams,
                               const struct lmq_gguf_evidence *evidence);
void lmq_gguf_begin_kimi(struct lmq_hparams *hparams);
void lmq_gguf_finish_kimi(struct lmq_hparams *hparams,
                          const struct lmq_gguf_evidence *evidence);
void lmq_gguf_begin_bitnet(struct lmq_hparams *hparams);
void lmq_gguf_begin_sigmoid(struct lmq_hparams *hparams);
void lmq_gguf_begin_sigmoid_mixture(struct lmq_hparams *hparams);
void lmq_gguf_begin_hunyuan(struct lmq_hparams *hparams);
void lmq_gguf_begin_spark(struct lmq_hparams *hparams);
void lmq_gguf_begin_hunyuan_experts(struct lmq_hparams *hparams);
void lmq_gguf_begin_granite_experts(struct lmq_hparams *hparams);
void lmq_gguf_begin_delta(struct lmq_hparams *hparams);
void lmq_gguf_finish_qwen3next(struct lmq_hparams *hparams,
                               const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_jamba(struct lmq_hparams *hparams,
                           const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_llama4(struct lmq_hparams *hparams,
                            const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_ernie_experts(struct lmq_hparams *hparams,
                                   const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_cohere2_experts(
    struct lmq_hparams *h, const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_still_full(struct lmq_hparams *hparams,
                                const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_afmoe(struct lmq_hparams *hparams,
                           const struct lmq_gguf_evidence *evidence);
void lmq_gguf_begin_granite_windows(struct lmq_hparams *h);
void lmq_gguf_begin_minicpm(struct lmq_hparams *hparams);
void lmq_gguf_finish_minicpm(struct lmq_hparams *hparams,
                             const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_minicpm3(struct lmq_hparams *hparams,
                              const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_deepseek(struct lmq_hparams *hparams,
                              const struct lmq_gguf_evidence *evidence);
void lmq_gguf_begin_gptoss(struct lmq_hparams *hparams);
void lmq_gguf_begin_minimax3(struct lmq_hparams *hparams);
void lmq_gguf_finish_gptoss(struct lmq_hparams *hparams,
                            const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_gemma(struct lmq_hparams *hparams,
                           const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_gemma2(struct lmq_hparams *hparams,
                            const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_gemma3(struct lmq_hparams *hparams,
                            const struct lmq_gguf_evidence *evidence);
/* (more/gguf_lately.c) */
void lmq_gguf_begin_smallthinker(struct lmq_hparams *hparams);
void lmq_gguf_finish_smallthinker(struct lmq_hparams *hparams,
                                  const struct lmq_gguf_evidence *evidence);
/* (gguf_kinds.c) */
void lmq_gguf_begin_muse(struct lmq_hparams *hparams);
void lmq_gguf_begin_gemma3n(struct lmq_hparams *hparams);
void lmq_gguf_finish_gemma3n(struct lmq_hparams *hparams,
                             const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_gemma4(struct lmq_hparams *hparams,
                            const struct lmq_gguf_evidence *evidence);
void lmq_gguf_begin_mimo2(struct lmq_hparams *hparams);
void lmq_gguf_finish_step35(struct lmq_hparams *hparams,
                            const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_laguna(struct lmq_hparams *hparams,
                            const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_mimo2(struct lmq_hparams *hparams,
                           const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_phi3(struct lmq_hparams *hparams,
                          const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_falcon(struct lmq_hparams *hparams,
                            const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_stablelm(struct lmq_hparams *hparams,
                              const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_olmo2(struct lmq_hparams *hparams,
                           const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_jais(struct lmq_hparams *hparams,
                          const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_bloom(struct lmq_hparams *hparams,
                           const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_baichuan(struct lmq_hparams *hparams,
                              const struct lmq_gguf_evidence *evidence);
void lmq_gguf_finish_smollm3(struct lmq_hparams *hparams,
                             const struct lmq_gguf_evidence *evidence);

/* (gguf_pools.c) */
void lmq_gguf_begin_deepseek4(struct lmq_hparams *hparams);
void lmq_gguf_finish_deepseek4(struct lmq_hparams *hparams,
                               const struct lmq_gguf_evidence *evidence);
void lmq_gguf_begin_glm5next(struct lmq_hparams *hparams);
void lmq_gguf_finish_glm5next(struct lmq_hparams *hparams,
                              const struct lmq_gguf_evidence *evidence);

/* ---- gguf_activation.c ---- */

struct lmq_gguf_front;
struct lmq_gguf_builder;

#define LMQ_GGUF_XIELU_LISTS 4

/* Adds the tensors of a model that has this activation. */
enum lmq_status lmq_gguf_add_xielu(struct lmq_checkpoint *checkpoint,
                                   const struct lmq_gguf_front *front,
                                   struct lmq_error *err);

/* What tensors a list is of; the list, with a number for each layer. */
enum lmq_role lmq_gguf_xielu_role(size_t list);
void lmq_gguf_write_xielu(struct lmq_gguf_builder *builder, size_t list,
                          const float *values, uint32_t n_layers);

#endif
