/*
 * hf_further.h - what the families of families_further.c do in config.json, for
 * their rows.
 */
#ifndef LMQ_FORMATS_HF_MORE_HF_FURTHER_H
#define LMQ_FORMATS_HF_MORE_HF_FURTHER_H

#include "formats/families/family_row.h"

void lmq_hf_begin_bitnet(struct lmq_hf_config *config);
void lmq_hf_finish_axk1(struct lmq_hf_config *config);
void lmq_hf_begin_maincoder(struct lmq_hf_config *config);
void lmq_hf_windows_spark(struct lmq_hf_config *config);
void lmq_hf_finish_spark(struct lmq_hf_config *config);
void lmq_hf_finish_nanbeige(struct lmq_hf_config *config);
void lmq_hf_finish_apertus_text(struct lmq_hf_config *config);
void lmq_hf_begin_hy4(struct lmq_hf_config *config);
void lmq_hf_begin_hy4vl(struct lmq_hf_config *config);
void lmq_hf_finish_hy4(struct lmq_hf_config *config);
void lmq_hf_finish_qwen(struct lmq_hf_config *config);
void lmq_hf_begin_minimax3(struct lmq_hf_config *config);
void lmq_hf_finish_minimax3(struct lmq_hf_config *config);
void lmq_hf_finish_compass(struct lmq_hf_config *config);
void lmq_hf_windows_muse(struct lmq_hf_config *config);
void lmq_hf_finish_muse(struct lmq_hf_config *config);

/* (hf_lately.c) */
void lmq_hf_begin_smallthinker(struct lmq_hf_config *config);
void lmq_hf_windows_smallthinker(struct lmq_hf_config *config);
void lmq_hf_begin_dots3(struct lmq_hf_config *config);
void lmq_hf_finish_dots3(struct lmq_hf_config *config);

/* (hf_deepseek4.c) */
void lmq_hf_begin_deepseek4(struct lmq_hf_config *config);
void lmq_hf_windows_deepseek4(struct lmq_hf_config *config);
void lmq_hf_finish_deepseek4(struct lmq_hf_config *config);

/* (hf_qwen4.c) */
void lmq_hf_begin_qwen4(struct lmq_hf_config *config);
void lmq_hf_finish_qwen4(struct lmq_hf_config *config);

#endif
