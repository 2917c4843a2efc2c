/*
 * hf_special.h - what single families do in config.json, for their rows.
 *
 * What a function reads, the one of its family that writes says again.
 */
#ifndef LMQ_FORMATS_HF_HF_SPECIAL_H
#define LMQ_FORMATS_HF_HF_SPECIAL_H

#include "formats/families/family_row.h"

void lmq_hf_windows_qwen(struct lmq_hf_config *config);
void lmq_hf_windows_qwen_experts(struct lmq_hf_config *config);
void lmq_hf_windows_by_period(struct lmq_hf_config *config);
void lmq_hf_windows_gemma3(struct lmq_hf_config *config);
void lmq_hf_windows_smollm3(struct lmq_hf_config *config);
void lmq_hf_finish_mixtral(struct lmq_hf_config *config);
void lmq_hf_finish_phimoe(struct lmq_hf_config *config);
void lmq_hf_finish_gptoss(struct lmq_hf_config *config);
void lmq_hf_finish_qwen_experts(struct lmq_hf_config *config);
void lmq_hf_finish_gemma(struct lmq_hf_config *config);
void lmq_hf_finish_later_gemma(struct lmq_hf_config *config);
void lmq_hf_begin_gpt2(struct lmq_hf_config *config);
void lmq_hf_begin_starcoder(struct lmq_hf_config *config);
void lmq_hf_begin_jais(struct lmq_hf_config *config);
void lmq_hf_finish_jais(struct lmq_hf_config *config);
void lmq_hf_begin_gptneox(struct lmq_hf_config *config);
void lmq_hf_begin_stablelm(struct lmq_hf_config *config);
void lmq_hf_begin_falcon(struct lmq_hf_config *config);
void lmq_hf_finish_olmoe(struct lmq_hf_config *config);
void lmq_hf_begin_gptj(struct lmq_hf_config *config);
void lmq_hf_finish_gptj(struct lmq_hf_config *config);
void lmq_hf_begin_codegen(struct lmq_hf_config *config);
void lmq_hf_begin_gptneo(struct lmq_hf_config *config);
void lmq_hf_windows_gptneo(struct lmq_hf_config *config);
void lmq_hf_begin_mpt(struct lmq_hf_config *config);
void lmq_hf_begin_dbrx(struct lmq_hf_config *config);
void lmq_hf_finish_dbrx(struct lmq_hf_config *config);
void lmq_hf_begin_bloom(struct lmq_hf_config *config);
void lmq_hf_begin_opt(struct lmq_hf_config *config);
void lmq_hf_begin_baichuan(struct lmq_hf_config *config);
void lmq_hf_finish_granite(struct lmq_hf_config *config);
void lmq_hf_finish_deepseek(struct lmq_hf_config *config);
void lmq_hf_begin_deepseek(struct lmq_hf_config *config);
void lmq_hf_finish_deepseek2(struct lmq_hf_config *config);
void lmq_hf_finish_deepseek3(struct lmq_hf_config *config);
/* One that routes by sigmoids, with one shared expert if nothing is said. */
void lmq_hf_finish_sigmoid(struct lmq_hf_config *config, uint32_t n_dense);
/* Groups of `size_key` positions are chosen, as many as make `key` positions;
 * what is left behind the last whole one is always seen. */
void lmq_hf_choose_groups(struct lmq_hf_config *config, const char *key,
                          uint32_t usual, const char *size_key,
                          uint32_t usual_size);
/* The context ends where sparse attention would no longer see all. */
void lmq_hf_finish_chosen(struct lmq_hf_config *config);
/* But where it is described: of each layer is said whether it chooses, or it is
 * one of `period`. */
void lmq_hf_finish_index(struct lmq_hf_config *config, uint32_t period);
/* Latents of which an indexer chooses; the usual part that does not turn. */
void lmq_hf_begin_chosen(struct lmq_hf_config *config, uint32_t usual);
void lmq_hf_begin_deepseek32(struct lmq_hf_config *config);
void lmq_hf_finish_deepseek32(struct lmq_hf_config *config);
void lmq_hf_begin_any_part(struct lmq_hf_config *config);
void lmq_hf_begin_axk2(struct lmq_hf_config *config);
void lmq_hf_finish_axk2(struct lmq_hf_config *config);
void lmq_hf_begin_glm5(struct lmq_hf_config *config);
void lmq_hf_finish_glm5(struct lmq_hf_config *config);
void lmq_hf_begin_glm4lite(struct lmq_hf_config *config);
void lmq_hf_finish_glm4lite(struct lmq_hf_config *config);
/* Of all with latent attention: how many layers are dense, and how many experts
 * are shared, if the file does not say. */
void lmq_hf_finish_latent(struct lmq_hf_config *config, uint32_t n_dense,
                          uint32_t n_shared);
void lmq_hf_begin_mistral4(struct lmq_hf_config *config);
void lmq_hf_finish_mistral4(struct lmq_hf_config *config);
void lmq_hf_begin_minicpm3(struct lmq_hf_config *config);

/* (hf_gemma3n.c) */
void lmq_hf_begin_gemma3n(struct lmq_hf_config *config);
void lmq_hf_finish_gemma3n(struct lmq_hf_config *config);

/* (more/hf_uneven.c) */
void lmq_hf_begin_step35(struct lmq_hf_config *config);
void lmq_hf_finish_step35(struct lmq_hf_config *config);
void lmq_hf_finish_laguna(struct lmq_hf_config *config);
void lmq_hf_finish_maple(struct lmq_hf_config *config);
void lmq_hf_begin_deci(struct lmq_hf_config *config);
void lmq_hf_begin_openelm(struct lmq_hf_config *config);

/* (hf_gemma4.c) */
void lmq_hf_begin_gemma4(struct lmq_hf_config *config);
void lmq_hf_finish_gemma4(struct lmq_hf_config *config);

/* (hf_mamba.c) */
void lmq_hf_begin_mamba(struct lmq_hf_config *config);
void lmq_hf_begin_falcon_mamba(struct lmq_hf_config *config);
void lmq_hf_begin_jamba(struct lmq_hf_config *config);
void lmq_hf_windows_jamba(struct lmq_hf_config *config);

/* (hf_olmo_hybrid.c) */
void lmq_hf_begin_olmo_hybrid(struct lmq_hf_config *config);
void lmq_hf_windows_olmo_hybrid(struct lmq_hf_config *config);
void lmq_hf_finish_olmo_hybrid(struct lmq_hf_config *config);

/* (hf_recurrent.c) */
void lmq_hf_windows_delta(struct lmq_hf_config *config);
void lmq_hf_finish_qwen3next(struct lmq_hf_config *config);
void lmq_hf_finish_qwen35(struct lmq_hf_config *config);
void lmq_hf_begin_bamba(struct lmq_hf_config *config);
void lmq_hf_windows_bamba(struct lmq_hf_config *config);
void lmq_hf_begin_falcon_hybrid(struct lmq_hf_config *config);
void lmq_hf_finish_falcon_hybrid(struct lmq_hf_config *config);
void lmq_hf_finish_silu(struct lmq_hf_config *config);
void lmq_hf_begin_granite_hybrid(struct lmq_hf_config *config);
void lmq_hf_windows_granite_hybrid(struct lmq_hf_config *config);
void lmq_hf_finish_granite_hybrid(struct lmq_hf_config *config);
void lmq_hf_begin_nemotron_hybrid(struct lmq_hf_config *config);
void lmq_hf_finish_nemotron_hybrid(struct lmq_hf_config *config);
void lmq_hf_begin_mamba2(struct lmq_hf_config *config);
void lmq_hf_windows_mamba2(struct lmq_hf_config *config);
void lmq_hf_begin_kimi(struct lmq_hf_config *config);
void lmq_hf_windows_kimi(struct lmq_hf_config *config);
void lmq_hf_begin_ling3(struct lmq_hf_config *config);
void lmq_hf_windows_ling3(struct lmq_hf_config *config);
void lmq_hf_finish_ling3(struct lmq_hf_config *config);
void lmq_hf_begin_recurrent_gemma(struct lmq_hf_config *config);
void lmq_hf_windows_recurrent_gemma(struct lmq_hf_config *config);
void lmq_hf_begin_lightning(struct lmq_hf_config *config);
void lmq_hf_windows_lightning(struct lmq_hf_config *config);
void lmq_hf_finish_lightning(struct lmq_hf_config *config);
void lmq_hf_finish_kimi(struct lmq_hf_config *config);
void lmq_hf_begin_glm5next(struct lmq_hf_config *config);
void lmq_hf_windows_glm5next(struct lmq_hf_config *config);
void lmq_hf_finish_glm5next(struct lmq_hf_config *config);
void lmq_hf_begin_lfm2(struct lmq_hf_config *config);
void lmq_hf_windows_lfm2(struct lmq_hf_config *config);
void lmq_hf_begin_lfm3(struct lmq_hf_config *config);
void lmq_hf_windows_lfm3(struct lmq_hf_config *config);
void lmq_hf_finish_lfm3(struct lmq_hf_config *config);
void lmq_hf_begin_lfm2_experts(struct lmq_hf_config *config);
void lmq_hf_finish_lfm2_experts(struct lmq_hf_config *config);

/* (hf_later.c) */
void lmq_hf_begin_llama4(struct lmq_hf_config *config);
void lmq_hf_windows_llama4(struct lmq_hf_config *config);
void lmq_hf_finish_llama4(struct lmq_hf_config *config);
void lmq_hf_finish_glm4moe(struct lmq_hf_config *config);
void lmq_hf_windows_dots1(struct lmq_hf_config *config);
void lmq_hf_finish_dots1(struct lmq_hf_config *config);
void lmq_hf_finish_minimax(struct lmq_hf_config *config);
void lmq_hf_finish_qwen3vl_experts(struct lmq_hf_config *config);
void lmq_hf_finish_ministral3(struct lmq_hf_config *config);
void lmq_hf_begin_hunyuan(struct lmq_hf_config *config);
void lmq_hf_begin_hunyuan_experts(struct lmq_hf_config *config);
void lmq_hf_finish_ernie_experts(struct lmq_hf_config *config);
void lmq_hf_finish_unscaled(struct lmq_hf_config *config);
void lmq_hf_windows_cohere2(struct lmq_hf_config *config);
void lmq_hf_windows_exaone4(struct lmq_hf_config *config);
void lmq_hf_finish_still_full(struct lmq_hf_config *config);
void lmq_hf_finish_granite_experts(struct lmq_hf_config *config);
void lmq_hf_windows_first_of_four(struct lmq_hf_config *config);
void lmq_hf_begin_all_experts(struct lmq_hf_config *config);
void lmq_hf_finish_solar(struct lmq_hf_config *config);
void lmq_hf_finish_exaone_experts(struct lmq_hf_config *config);
void lmq_hf_finish_kolibri(struct lmq_hf_config *config);

/* (hf_latest.c) */
void lmq_hf_windows_afmoe(struct lmq_hf_config *config);
void lmq_hf_finish_afmoe(struct lmq_hf_config *config);
void lmq_hf_finish_hyv3(struct lmq_hf_config *config);
void lmq_hf_windows_mellum(struct lmq_hf_config *config);
void lmq_hf_begin_nanochat(struct lmq_hf_config *config);
void lmq_hf_begin_exaone(struct lmq_hf_config *config);
void lmq_hf_finish_mellum(struct lmq_hf_config *config);
void lmq_hf_windows_flint(struct lmq_hf_config *config);
void lmq_hf_finish_flint(struct lmq_hf_config *config);
void lmq_hf_begin_hyperclovax(struct lmq_hf_config *config);
void lmq_hf_finish_minicpm(struct lmq_hf_config *config);
void lmq_hf_finish_minicpm3(struct lmq_hf_config *config);
void lmq_hf_begin_cohere2_experts(struct lmq_hf_config *config);
void lmq_hf_windows_cohere2_experts(struct lmq_hf_config *config);
void lmq_hf_finish_cohere2_experts(struct lmq_hf_config *config);
void lmq_hf_finish_granite_windows(struct lmq_hf_config *config);
void lmq_hf_finish_ling(struct lmq_hf_config *config);
void lmq_hf_finish_ling2(struct lmq_hf_config *config);
void lmq_hf_finish_sarvam(struct lmq_hf_config *config);
void lmq_hf_finish_sarvam_latent(struct lmq_hf_config *config);
void lmq_hf_begin_mimo2(struct lmq_hf_config *config);
void lmq_hf_windows_mimo2(struct lmq_hf_config *config);
void lmq_hf_finish_mimo2(struct lmq_hf_config *config);

void lmq_hf_write_qwen(const struct lmq_hparams *hparams, json_t **config);
void lmq_hf_write_dense_layers(const struct lmq_hparams *hparams,
                               json_t **config);
void lmq_hf_write_qwen_experts(const struct lmq_hparams *hparams,
                               json_t **config);
void lmq_hf_write_smollm3(const struct lmq_hparams *hparams, json_t **config);
void lmq_hf_write_later_gemma(const struct lmq_hparams *hparams,
                              json_t **config);
void lmq_hf_write_stablelm(const struct lmq_hparams *hparams, json_t **config);
void lmq_hf_write_granite(const struct lmq_hparams *hparams, json_t **config);

#endif
