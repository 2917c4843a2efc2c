/*
 * family_names.c - how the families call their tensors and arrange them, as
 * the model classes of Hugging Face do. # stands for the layer, @ for the
 * expert or the head.
 */
#include "config.h"

#include "tests/families/family.h"

/* ---- Outside of the layers ---- */

const struct stored hf_frame[] = {
    {AS_EMBEDDING, "model.embed_tokens", MODEL(embedding)},
    {AS_NORM, "model.norm", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_END, NULL, 0},
};

/* With what sees images, beside it. */
const struct stored gemma3_frame[] = {
    {AS_STRAY, "vision_tower.vision_model.post_layernorm.weight", 0},
    {AS_EMBEDDING, "model.embed_tokens", MODEL(embedding)},
    {AS_NORM, "model.norm", MODEL(norm)},
    {AS_END, NULL, 0},
};

const struct stored gemma4_frame[] = {
    {AS_STRAY, "vision_tower.std_scale", 0},
    {AS_STRAY, "embed_vision.embedding_projection.weight", 0},
    {AS_EMBEDDING, "model.embed_tokens", MODEL(embedding)},
    {AS_INPUTS, "model.embed_tokens_per_layer", 0},
    {AS_WEIGHT, "model.per_layer_model_projection",
     MODEL(inputs_proj)},
    {AS_NORM, "model.per_layer_projection_norm",
     MODEL(inputs_norm)},
    {AS_NORM, "model.norm", MODEL(norm)},
    {AS_END, NULL, 0},
};

/* ... and with what predicts several tokens at a time. */
const struct stored qwen35_frame[] = {
    {AS_STRAY, "model.visual.merger.norm.weight", 0},
    {AS_STRAY, "mtp.pre_fc_norm_hidden.weight", 0},
    {AS_EMBEDDING, "model.embed_tokens", MODEL(embedding)},
    {AS_NORM, "model.norm", MODEL(norm)},
    {AS_END, NULL, 0},
};

const struct stored phi2_frame[] = {
    {AS_EMBEDDING, "model.embed_tokens", MODEL(embedding)},
    {AS_NORM, "model.final_layernorm", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_END, NULL, 0},
};

const struct stored neox_frame[] = {
    {AS_EMBEDDING, "gpt_neox.embed_in", MODEL(embedding)},
    {AS_NORM, "gpt_neox.final_layer_norm", MODEL(norm)},
    {AS_LINEAR, "embed_out", MODEL(head)},
    {AS_END, NULL, 0},
};

const struct stored falcon_frame[] = {
    {AS_EMBEDDING, "transformer.word_embeddings", MODEL(embedding)},
    {AS_NORM, "transformer.ln_f", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_END, NULL, 0},
};

const struct stored gpt2_frame[] = {
    {AS_EMBEDDING, "transformer.wte", MODEL(embedding)},
    {AS_TABLE, "transformer.wpe", MODEL(table)},
    {AS_NORM, "transformer.ln_f", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_END, NULL, 0},
};

/* As the first GPT-2 checkpoints were saved. */
const struct stored gpt2_bare_frame[] = {
    {AS_EMBEDDING, "wte", MODEL(embedding)},
    {AS_TABLE, "wpe", MODEL(table)},
    {AS_NORM, "ln_f", MODEL(norm)},
    {AS_END, NULL, 0},
};

const struct stored plain_frame[] = {
    {AS_EMBEDDING, "token_embd", MODEL(embedding)},
    {AS_TABLE, "position_embd", MODEL(table)},
    {AS_NORM, "output_norm", MODEL(norm)},
    {AS_LINEAR, "output", MODEL(head)},
    {AS_END, NULL, 0},
};

/* ---- Llama and its relatives ---- */

const struct stored hf_attention[] = {
    {AS_LINEAR, "model.layers.#.self_attn.q_proj", LAYER(q)},
    {AS_LINEAR, "model.layers.#.self_attn.k_proj", LAYER(k)},
    {AS_LINEAR, "model.layers.#.self_attn.v_proj", LAYER(v)},
    {AS_LINEAR, "model.layers.#.self_attn.o_proj", LAYER(o)},
    {AS_NORM, "model.layers.#.self_attn.q_norm", LAYER(q_norm)},
    {AS_NORM, "model.layers.#.self_attn.k_norm", LAYER(k_norm)},
    {AS_END, NULL, 0},
};

const struct stored hf_norms[] = {
    {AS_NORM, "model.layers.#.input_layernorm", LAYER(attn_norm)},
    {AS_NORM, "model.layers.#.post_attention_layernorm", LAYER(ffn_norm)},
    {AS_END, NULL, 0},
};

/* Qwen 3 Next, and Qwen 3.5 */
const struct stored qwen3next_attention[] = {
    {AS_Q_GATE, "model.layers.#.self_attn.q_proj", LAYER(q)},
    {AS_LINEAR, "model.layers.#.self_attn.k_proj", LAYER(k)},
    {AS_LINEAR, "model.layers.#.self_attn.v_proj", LAYER(v)},
    {AS_LINEAR, "model.layers.#.self_attn.o_proj", LAYER(o)},
    {AS_NORM, "model.layers.#.self_attn.q_norm", LAYER(q_norm)},
    {AS_NORM, "model.layers.#.self_attn.k_norm", LAYER(k_norm)},
    {AS_DELTA_QKVZ, "model.layers.#.linear_attn.in_proj_qkvz", LAYER(delta)},
    {AS_DELTA_BA, "model.layers.#.linear_attn.in_proj_ba", LAYER(delta)},
    {AS_END, NULL, 0},
};

const struct stored qwen35_attention[] = {
    {AS_Q_GATE, "model.layers.#.self_attn.q_proj", LAYER(q)},
    {AS_LINEAR, "model.layers.#.self_attn.k_proj", LAYER(k)},
    {AS_LINEAR, "model.layers.#.self_attn.v_proj", LAYER(v)},
    {AS_LINEAR, "model.layers.#.self_attn.o_proj", LAYER(o)},
    {AS_NORM, "model.layers.#.self_attn.q_norm", LAYER(q_norm)},
    {AS_NORM, "model.layers.#.self_attn.k_norm", LAYER(k_norm)},
    {AS_DELTA_QKV, "model.layers.#.linear_attn.in_proj_qkv", LAYER(delta)},
    {AS_LINEAR, "model.layers.#.linear_attn.in_proj_z", LAYER(delta.gate)},
    {AS_WEIGHT, "model.layers.#.linear_attn.in_proj_a", LAYER(delta.alpha)},
    {AS_LINEAR, "model.layers.#.linear_attn.in_proj_b", LAYER(delta.beta)},
    {AS_END, NULL, 0},
};

const struct stored delta_layer[] = {
    {AS_STEPS, "model.layers.#.linear_attn.dt_bias", LAYER(delta)},
    {AS_DECAYS, "model.layers.#.linear_attn.A_log", LAYER(delta)},
    {AS_CONV, "model.layers.#.linear_attn.conv1d", LAYER(delta)},
    {AS_PLAIN_NORM, "model.layers.#.linear_attn.norm", LAYER(delta.norm)},
    {AS_LINEAR, "model.layers.#.linear_attn.out_proj", LAYER(delta.out)},
    {AS_END, NULL, 0},
};

/* A state space, as in Bamba and Granite 4 */
const struct stored mamba_layer[] = {
    {AS_STATES, "model.layers.#.mamba.in_proj", LAYER(delta)},
    {AS_STEPS, "model.layers.#.mamba.dt_bias", LAYER(delta)},
    {AS_DECAYS, "model.layers.#.mamba.A_log", LAYER(delta)},
    {AS_SKIP, "model.layers.#.mamba.D", LAYER(delta)},
    {AS_CONV, "model.layers.#.mamba.conv1d", LAYER(delta)},
    {AS_NORM, "model.layers.#.mamba.norm", LAYER(delta.norm)},
    {AS_LINEAR, "model.layers.#.mamba.out_proj", LAYER(delta.out)},
    {AS_END, NULL, 0},
};

const struct stored bamba_frame[] = {
    {AS_EMBEDDING, "model.embed_tokens", MODEL(embedding)},
    {AS_NORM, "model.final_layernorm", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_END, NULL, 0},
};

const struct stored bamba_mlp[] = {
    {AS_NORM, "model.layers.#.input_layernorm", LAYER(attn_norm)},
    {AS_NORM, "model.layers.#.pre_ff_layernorm", LAYER(ffn_norm)},
    {AS_LINEAR, "model.layers.#.feed_forward.gate_proj", LAYER(mlp.gate)},
    {AS_LINEAR, "model.layers.#.feed_forward.up_proj", LAYER(mlp.up)},
    {AS_LINEAR, "model.layers.#.feed_forward.down_proj", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

/* Nemotron-H, and Mamba 2 itself: a layer has one part */
const struct stored nemotron_frame[] = {
    {AS_EMBEDDING, "backbone.embeddings", MODEL(embedding)},
    {AS_NORM, "backbone.norm_f", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_END, NULL, 0},
};

const struct stored nemotron_layer[] = {
    {AS_NORM, "backbone.layers.#.norm", LAYER(attn_norm)},
    {AS_NORM, "backbone.layers.#.norm", LAYER(ffn_norm)},
    {AS_STATES, "backbone.layers.#.mixer.in_proj", LAYER(delta)},
    {AS_STEPS, "backbone.layers.#.mixer.dt_bias", LAYER(delta)},
    {AS_DECAYS, "backbone.layers.#.mixer.A_log", LAYER(delta)},
    {AS_SKIP, "backbone.layers.#.mixer.D", LAYER(delta)},
    {AS_CONV, "backbone.layers.#.mixer.conv1d", LAYER(delta)},
    {AS_NORM, "backbone.layers.#.mixer.norm", LAYER(delta.norm)},
    {AS_LINEAR, "backbone.layers.#.mixer.out_proj", LAYER(delta.out)},
    {AS_LINEAR, "backbone.layers.#.mixer.q_proj", LAYER(q)},
    {AS_LINEAR, "backbone.layers.#.mixer.k_proj", LAYER(k)},
    {AS_LINEAR, "backbone.layers.#.mixer.v_proj", LAYER(v)},
    {AS_LINEAR, "backbone.layers.#.mixer.o_proj", LAYER(o)},
    {AS_LINEAR, "backbone.layers.#.mixer.up_proj", LAYER(mlp.up)},
    {AS_LINEAR, "backbone.layers.#.mixer.down_proj", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

const struct stored nemotron_experts[] = {
    {AS_LINEAR, "backbone.layers.#.mixer.gate", LAYER(router)},
    {AS_CORRECTION, "backbone.layers.#.mixer.gate.e_score_correction_bias",
     0},
    {AS_EXPERTS, "backbone.layers.#.mixer.experts.@.up_proj", MLP(up)},
    {AS_EXPERTS, "backbone.layers.#.mixer.experts.@.down_proj", MLP(down)},
    {AS_LINEAR, "backbone.layers.#.mixer.shared_experts.up_proj",
     LAYER(shared.up)},
    {AS_LINEAR, "backbone.layers.#.mixer.shared_experts.down_proj",
     LAYER(shared.down)},
    {AS_END, NULL, 0},
};

/* Short convolutions */
const struct stored lfm2_frame[] = {
    {AS_EMBEDDING, "model.embed_tokens", MODEL(embedding)},
    {AS_NORM, "model.embedding_norm", MODEL(norm)},
    {AS_END, NULL, 0},
};

const struct stored lfm2_layer[] = {
    {AS_NORM, "model.layers.#.operator_norm", LAYER(attn_norm)},
    {AS_NORM, "model.layers.#.ffn_norm", LAYER(ffn_norm)},
    {AS_KQV, "model.layers.#.conv.in_proj", LAYER(delta)},
    {AS_CONV, "model.layers.#.conv.conv", LAYER(delta)},
    {AS_LINEAR, "model.layers.#.conv.out_proj", LAYER(delta.out)},
    {AS_LINEAR, "model.layers.#.self_attn.q_proj", LAYER(q)},
    {AS_LINEAR, "model.layers.#.self_attn.k_proj", LAYER(k)},
    {AS_LINEAR, "model.layers.#.self_attn.v_proj", LAYER(v)},
    {AS_LINEAR, "model.layers.#.self_attn.out_proj", LAYER(o)},
    {AS_NORM, "model.layers.#.self_attn.q_layernorm", LAYER(q_norm)},
    {AS_NORM, "model.layers.#.self_attn.k_layernorm", LAYER(k_norm)},
    {AS_LINEAR, "model.layers.#.feed_forward.w1", LAYER(mlp.gate)},
    {AS_LINEAR, "model.layers.#.feed_forward.w3", LAYER(mlp.up)},
    {AS_LINEAR, "model.layers.#.feed_forward.w2", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

const struct stored lfm2_experts[] = {
    {AS_LINEAR, "model.layers.#.feed_forward.gate", LAYER(router)},
    {AS_CORRECTION, "model.layers.#.feed_forward.expert_bias", 0},
    {AS_EXPERTS, "model.layers.#.feed_forward.experts.@.w1", MLP(gate)},
    {AS_EXPERTS, "model.layers.#.feed_forward.experts.@.w3", MLP(up)},
    {AS_EXPERTS, "model.layers.#.feed_forward.experts.@.w2", MLP(down)},
    {AS_END, NULL, 0},
};

/* Gemma 2, 3 */
const struct stored hf_norms_around[] = {
    {AS_NORM, "model.layers.#.input_layernorm", LAYER(attn_norm)},
    {AS_NORM, "model.layers.#.post_attention_layernorm",
     LAYER(attn_post_norm)},
    {AS_NORM, "model.layers.#.pre_feedforward_layernorm", LAYER(ffn_norm)},
    {AS_NORM, "model.layers.#.post_feedforward_layernorm",
     LAYER(ffn_post_norm)},
    {AS_END, NULL, 0},
};

/* Gemma 4, beside what Gemma 3 has */
const struct stored gemma4_layer[] = {
    {AS_LINEAR, "model.layers.#.per_layer_input_gate", LAYER(input_gate)},
    {AS_LINEAR, "model.layers.#.per_layer_projection", LAYER(input_out)},
    {AS_NORM, "model.layers.#.post_per_layer_input_norm", LAYER(input_norm)},
    {AS_SCALE, "model.layers.#.layer_scalar", LAYER(scale)},
    {AS_END, NULL, 0},
};

const struct stored apertus_layer[] = {
    {AS_NORM, "model.layers.#.attention_layernorm", LAYER(attn_norm)},
    {AS_NORM, "model.layers.#.feedforward_layernorm", LAYER(ffn_norm)},
    {AS_XIELU, "model.layers.#.mlp.act_fn.alpha_p", 0},
    {AS_XIELU, "model.layers.#.mlp.act_fn.alpha_n", 1},
    {AS_XIELU, "model.layers.#.mlp.act_fn.beta", 2},
    {AS_XIELU, "model.layers.#.mlp.act_fn.eps", 3},
    {AS_END, NULL, 0},
};

const struct stored gemma4_experts[] = {
    {AS_LINEAR, "model.layers.#.router.proj", LAYER(router)},
    {AS_VECTOR, "model.layers.#.router.scale", LAYER(router_norm)},
    {AS_SCALES, "model.layers.#.router.per_expert_scale", 0},
    {AS_EXPERTS_GATE_UP, "model.layers.#.experts.gate_up_proj", MLP(gate)},
    {AS_EXPERTS_FUSED, "model.layers.#.experts.down_proj", MLP(down)},
    {AS_NORM, "model.layers.#.pre_feedforward_layernorm_2",
     LAYER(experts_norm)},
    {AS_NORM, "model.layers.#.post_feedforward_layernorm_1",
     LAYER(mlp_post_norm)},
    {AS_NORM, "model.layers.#.post_feedforward_layernorm_2",
     LAYER(experts_post_norm)},
    {AS_END, NULL, 0},
};

/* OLMo 2 */
const struct stored hf_norms_after[] = {
    {AS_NORM, "model.layers.#.post_attention_layernorm",
     LAYER(attn_post_norm)},
    {AS_NORM, "model.layers.#.post_feedforward_layernorm",
     LAYER(ffn_post_norm)},
    {AS_END, NULL, 0},
};

const struct stored hf_mlp[] = {
    {AS_LINEAR, "model.layers.#.mlp.gate_proj", LAYER(mlp.gate)},
    {AS_LINEAR, "model.layers.#.mlp.up_proj", LAYER(mlp.up)},
    {AS_LINEAR, "model.layers.#.mlp.down_proj", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

/* In checkpoints from early versions. */
const struct stored hf_frequencies[] = {
    {AS_FREQUENCIES, "model.layers.#.self_attn.rotary_emb.inv_freq", 0},
    {AS_END, NULL, 0},
};

const struct stored cohere_norms[] = {
    {AS_NORM, "model.layers.#.input_layernorm", LAYER(attn_norm)},
    {AS_LINEAR, "model.layers.#.self_attn.q_proj", LAYER(q)},
    {AS_LINEAR, "model.layers.#.self_attn.k_proj", LAYER(k)},
    {AS_LINEAR, "model.layers.#.self_attn.v_proj", LAYER(v)},
    {AS_LINEAR, "model.layers.#.self_attn.o_proj", LAYER(o)},
    {AS_NORM_OF_HEADS, "model.layers.#.self_attn.q_norm", LAYER(q_norm)},
    {AS_NORM_OF_HEADS, "model.layers.#.self_attn.k_norm", LAYER(k_norm)},
    {AS_END, NULL, 0},
};

const struct stored stablelm_norms[] = {
    {AS_NORM, "model.layers.#.input_layernorm", LAYER(attn_norm)},
    {AS_NORM, "model.layers.#.post_attention_layernorm", LAYER(ffn_norm)},
    {AS_LINEAR, "model.layers.#.self_attn.q_proj", LAYER(q)},
    {AS_LINEAR, "model.layers.#.self_attn.k_proj", LAYER(k)},
    {AS_LINEAR, "model.layers.#.self_attn.v_proj", LAYER(v)},
    {AS_LINEAR, "model.layers.#.self_attn.o_proj", LAYER(o)},
    {AS_NORMS_OF_HEADS, "model.layers.#.self_attn.q_layernorm.norms.@",
     LAYER(q_norm)},
    {AS_NORMS_OF_HEADS, "model.layers.#.self_attn.k_layernorm.norms.@",
     LAYER(k_norm)},
    {AS_END, NULL, 0},
};

const struct stored phi2_layer[] = {
    {AS_NORM, "model.layers.#.input_layernorm", LAYER(attn_norm)},
    {AS_LINEAR, "model.layers.#.self_attn.q_proj", LAYER(q)},
    {AS_LINEAR, "model.layers.#.self_attn.k_proj", LAYER(k)},
    {AS_LINEAR, "model.layers.#.self_attn.v_proj", LAYER(v)},
    {AS_LINEAR, "model.layers.#.self_attn.dense", LAYER(o)},
    {AS_LINEAR, "model.layers.#.mlp.fc1", LAYER(mlp.up)},
    {AS_LINEAR, "model.layers.#.mlp.fc2", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

const struct stored phi3_layer[] = {
    {AS_NORM, "model.layers.#.input_layernorm", LAYER(attn_norm)},
    {AS_NORM, "model.layers.#.post_attention_layernorm", LAYER(ffn_norm)},
    {AS_QKV, "model.layers.#.self_attn.qkv_proj", 0},
    {AS_LINEAR, "model.layers.#.self_attn.o_proj", LAYER(o)},
    {AS_GATE_UP, "model.layers.#.mlp.gate_up_proj", LAYER(mlp)},
    {AS_LINEAR, "model.layers.#.mlp.down_proj", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

/* ---- Others ---- */

const struct stored neox_layer[] = {
    {AS_NORM, "gpt_neox.layers.#.input_layernorm", LAYER(attn_norm)},
    {AS_NORM, "gpt_neox.layers.#.post_attention_layernorm", LAYER(ffn_norm)},
    {AS_MASK, "gpt_neox.layers.#.attention.bias", 0},
    {AS_FREQUENCIES, "gpt_neox.layers.#.attention.rotary_emb.inv_freq", 0},
    {AS_QKV_BY_HEAD, "gpt_neox.layers.#.attention.query_key_value", 0},
    {AS_LINEAR, "gpt_neox.layers.#.attention.dense", LAYER(o)},
    {AS_LINEAR, "gpt_neox.layers.#.mlp.dense_h_to_4h", LAYER(mlp.up)},
    {AS_LINEAR, "gpt_neox.layers.#.mlp.dense_4h_to_h", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

const struct stored falcon_layer[] = {
    {AS_QKV_BY_HEAD, "transformer.h.#.self_attention.query_key_value", 0},
    {AS_LINEAR, "transformer.h.#.self_attention.dense", LAYER(o)},
    {AS_LINEAR, "transformer.h.#.mlp.dense_h_to_4h", LAYER(mlp.up)},
    {AS_LINEAR, "transformer.h.#.mlp.dense_4h_to_h", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

const struct stored falcon_one_norm[] = {
    {AS_NORM, "transformer.h.#.input_layernorm", LAYER(attn_norm)},
    {AS_NORM, "transformer.h.#.post_attention_layernorm", LAYER(ffn_norm)},
    {AS_END, NULL, 0},
};

const struct stored falcon_two_norms[] = {
    {AS_NORM, "transformer.h.#.ln_attn", LAYER(attn_norm)},
    {AS_NORM, "transformer.h.#.ln_mlp", LAYER(ffn_norm)},
    {AS_END, NULL, 0},
};

const struct stored gpt2_layer[] = {
    {AS_NORM, "transformer.h.#.ln_1", LAYER(attn_norm)},
    {AS_QKV, "transformer.h.#.attn.c_attn", 0},
    {AS_LINEAR, "transformer.h.#.attn.c_proj", LAYER(o)},
    {AS_NORM, "transformer.h.#.ln_2", LAYER(ffn_norm)},
    {AS_LINEAR, "transformer.h.#.mlp.c_fc", LAYER(mlp.up)},
    {AS_LINEAR, "transformer.h.#.mlp.c_proj", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

const struct stored gpt2_bare_layer[] = {
    {AS_NORM, "h.#.ln_1", LAYER(attn_norm)},
    {AS_MASK, "h.#.attn.bias", 0},
    {AS_QKV, "h.#.attn.c_attn", 0},
    {AS_LINEAR, "h.#.attn.c_proj", LAYER(o)},
    {AS_NORM, "h.#.ln_2", LAYER(ffn_norm)},
    {AS_LINEAR, "h.#.mlp.c_fc", LAYER(mlp.up)},
    {AS_LINEAR, "h.#.mlp.c_proj", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

const struct stored starcoder_layer[] = {
    {AS_NORM, "transformer.h.#.ln_1", LAYER(attn_norm)},
    {AS_QKV_BY_HEAD, "transformer.h.#.attn.c_attn", 0},
    {AS_LINEAR, "transformer.h.#.attn.c_proj", LAYER(o)},
    {AS_NORM, "transformer.h.#.ln_2", LAYER(ffn_norm)},
    {AS_LINEAR, "transformer.h.#.mlp.c_fc", LAYER(mlp.up)},
    {AS_LINEAR, "transformer.h.#.mlp.c_proj", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

/* ---- Experts ---- */

const struct stored mixtral_experts[] = {
    {AS_LINEAR, "model.layers.#.block_sparse_moe.gate", LAYER(router)},
    {AS_EXPERTS, "model.layers.#.block_sparse_moe.experts.@.w1", MLP(gate)},
    {AS_EXPERTS, "model.layers.#.block_sparse_moe.experts.@.w2", MLP(down)},
    {AS_EXPERTS, "model.layers.#.block_sparse_moe.experts.@.w3", MLP(up)},
    {AS_END, NULL, 0},
};

const struct stored qwen_experts[] = {
    {AS_LINEAR, "model.layers.#.mlp.gate", LAYER(router)},
    {AS_EXPERTS, "model.layers.#.mlp.experts.@.gate_proj", MLP(gate)},
    {AS_EXPERTS, "model.layers.#.mlp.experts.@.up_proj", MLP(up)},
    {AS_EXPERTS, "model.layers.#.mlp.experts.@.down_proj", MLP(down)},
    {AS_LINEAR, "model.layers.#.mlp.shared_expert.gate_proj",
     LAYER(shared.gate)},
    {AS_LINEAR, "model.layers.#.mlp.shared_expert.up_proj", LAYER(shared.up)},
    {AS_LINEAR, "model.layers.#.mlp.shared_expert.down_proj",
     LAYER(shared.down)},
    {AS_LINEAR, "model.layers.#.mlp.shared_expert_gate",
     LAYER(shared_switch)},
    {AS_END, NULL, 0},
};

/* As the library keeps them in memory. */
const struct stored fused_experts[] = {
    {AS_LINEAR, "model.layers.#.mlp.gate", LAYER(router)},
    {AS_EXPERTS_GATE_UP, "model.layers.#.mlp.experts.gate_up_proj", MLP(gate)},
    {AS_EXPERTS_FUSED, "model.layers.#.mlp.experts.down_proj", MLP(down)},
    {AS_LINEAR, "model.layers.#.mlp.shared_expert.gate_proj",
     LAYER(shared.gate)},
    {AS_LINEAR, "model.layers.#.mlp.shared_expert.up_proj", LAYER(shared.up)},
    {AS_LINEAR, "model.layers.#.mlp.shared_expert.down_proj",
     LAYER(shared.down)},
    {AS_LINEAR, "model.layers.#.mlp.shared_expert_gate",
     LAYER(shared_switch)},
    {AS_END, NULL, 0},
};

const struct stored gptoss_layer[] = {
    {AS_SINKS, "model.layers.#.self_attn.sinks", 0},
    {AS_LINEAR, "model.layers.#.mlp.router", LAYER(router)},
    {AS_EXPERTS_GATE_UP, "model.layers.#.mlp.experts.gate_up_proj", MLP(gate)},
    {AS_EXPERTS_FUSED, "model.layers.#.mlp.experts.down_proj", MLP(down)},
    {AS_END, NULL, 0},
};

const struct stored llama4_layer[] = {
    {AS_LINEAR, "model.layers.#.feed_forward.gate_proj", LAYER(mlp.gate)},
    {AS_LINEAR, "model.layers.#.feed_forward.up_proj", LAYER(mlp.up)},
    {AS_LINEAR, "model.layers.#.feed_forward.down_proj", LAYER(mlp.down)},
    {AS_LINEAR, "model.layers.#.feed_forward.router", LAYER(router)},
    {AS_LINEAR, "model.layers.#.feed_forward.shared_expert.gate_proj",
     LAYER(shared.gate)},
    {AS_LINEAR, "model.layers.#.feed_forward.shared_expert.up_proj",
     LAYER(shared.up)},
    {AS_LINEAR, "model.layers.#.feed_forward.shared_expert.down_proj",
     LAYER(shared.down)},
    {AS_END, NULL, 0},
};

const struct stored llama4_fused[] = {
    {AS_EXPERTS_GATE_UP, "model.layers.#.feed_forward.experts.gate_up_proj",
     MLP(gate)},
    {AS_EXPERTS_FUSED, "model.layers.#.feed_forward.experts.down_proj",
     MLP(down)},
    {AS_END, NULL, 0},
};

/* As llm-compressor takes them apart. */
const struct stored llama4_experts[] = {
    {AS_EXPERTS, "model.layers.#.feed_forward.experts.@.gate_proj",
     MLP(gate)},
    {AS_EXPERTS, "model.layers.#.feed_forward.experts.@.up_proj", MLP(up)},
    {AS_EXPERTS, "model.layers.#.feed_forward.experts.@.down_proj",
     MLP(down)},
    {AS_END, NULL, 0},
};

const struct stored minimax_experts[] = {
    {AS_LINEAR, "model.layers.#.block_sparse_moe.gate", LAYER(router)},
    {AS_CORRECTION,
     "model.layers.#.block_sparse_moe.e_score_correction_bias", 0},
    {AS_EXPERTS, "model.layers.#.block_sparse_moe.experts.@.w1", MLP(gate)},
    {AS_EXPERTS, "model.layers.#.block_sparse_moe.experts.@.w2", MLP(down)},
    {AS_EXPERTS, "model.layers.#.block_sparse_moe.experts.@.w3", MLP(up)},
    {AS_END, NULL, 0},
};

const struct stored hunyuan_norms[] = {
    {AS_NORM, "model.layers.#.self_attn.query_layernorm", LAYER(q_norm)},
    {AS_NORM, "model.layers.#.self_attn.key_layernorm", LAYER(k_norm)},
    {AS_LINEAR, "model.layers.#.self_attn.q_proj", LAYER(q)},
    {AS_LINEAR, "model.layers.#.self_attn.k_proj", LAYER(k)},
    {AS_LINEAR, "model.layers.#.self_attn.v_proj", LAYER(v)},
    {AS_LINEAR, "model.layers.#.self_attn.o_proj", LAYER(o)},
    {AS_END, NULL, 0},
};

const struct stored hunyuan_experts[] = {
    {AS_LINEAR, "model.layers.#.mlp.gate.wg", LAYER(router)},
    {AS_EXPERTS, "model.layers.#.mlp.experts.@.gate_proj", MLP(gate)},
    {AS_EXPERTS, "model.layers.#.mlp.experts.@.up_proj", MLP(up)},
    {AS_EXPERTS, "model.layers.#.mlp.experts.@.down_proj", MLP(down)},
    {AS_LINEAR, "model.layers.#.mlp.shared_mlp.gate_proj",
     LAYER(shared.gate)},
    {AS_LINEAR, "model.layers.#.mlp.shared_mlp.up_proj", LAYER(shared.up)},
    {AS_LINEAR, "model.layers.#.mlp.shared_mlp.down_proj",
     LAYER(shared.down)},
    {AS_END, NULL, 0},
};

const struct stored ernie_experts[] = {
    {AS_LINEAR, "model.layers.#.mlp.gate", LAYER(router)},
    {AS_CORRECTION, "model.layers.#.mlp.moe_statics.e_score_correction_bias",
     0},
    {AS_EXPERTS, "model.layers.#.mlp.experts.@.gate_proj", MLP(gate)},
    {AS_EXPERTS, "model.layers.#.mlp.experts.@.up_proj", MLP(up)},
    {AS_EXPERTS, "model.layers.#.mlp.experts.@.down_proj", MLP(down)},
    {AS_LINEAR, "model.layers.#.mlp.shared_experts.gate_proj",
     LAYER(shared.gate)},
    {AS_LINEAR, "model.layers.#.mlp.shared_experts.up_proj",
     LAYER(shared.up)},
    {AS_LINEAR, "model.layers.#.mlp.shared_experts.down_proj",
     LAYER(shared.down)},
    {AS_END, NULL, 0},
};

const struct stored granitemoe_layer[] = {
    {AS_LINEAR, "model.layers.#.block_sparse_moe.router.layer",
     LAYER(router)},
    {AS_EXPERTS_GATE_UP,
     "model.layers.#.block_sparse_moe.input_linear.weight", MLP(gate)},
    {AS_EXPERTS_FUSED, "model.layers.#.block_sparse_moe.output_linear.weight",
     MLP(down)},
    {AS_GATE_UP, "model.layers.#.shared_mlp.input_linear", LAYER(shared)},
    {AS_LINEAR, "model.layers.#.shared_mlp.output_linear",
     LAYER(shared.down)},
    {AS_END, NULL, 0},
};

/* Where there are no experts it is the feed-forward. */
const struct stored granite4_mlp[] = {
    {AS_GATE_UP, "model.layers.#.shared_mlp.input_linear", LAYER(mlp)},
    {AS_LINEAR, "model.layers.#.shared_mlp.output_linear", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

const struct stored vaultgemma_norms[] = {
    {AS_NORM, "model.layers.#.input_layernorm", LAYER(attn_norm)},
    {AS_NORM, "model.layers.#.pre_feedforward_layernorm", LAYER(ffn_norm)},
    {AS_END, NULL, 0},
};

const struct stored glm_layer[] = {
    {AS_LINEAR, "model.layers.#.self_attn.q_proj", LAYER(q)},
    {AS_LINEAR, "model.layers.#.self_attn.k_proj", LAYER(k)},
    {AS_LINEAR, "model.layers.#.self_attn.v_proj", LAYER(v)},
    {AS_LINEAR, "model.layers.#.self_attn.o_proj", LAYER(o)},
    {AS_GATE_UP, "model.layers.#.mlp.gate_up_proj", LAYER(mlp)},
    {AS_LINEAR, "model.layers.#.mlp.down_proj", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

const struct stored glm4_norms[] = {
    {AS_NORM, "model.layers.#.input_layernorm", LAYER(attn_norm)},
    {AS_NORM, "model.layers.#.post_self_attn_layernorm",
     LAYER(attn_post_norm)},
    {AS_NORM, "model.layers.#.post_attention_layernorm", LAYER(ffn_norm)},
    {AS_NORM, "model.layers.#.post_mlp_layernorm", LAYER(ffn_post_norm)},
    {AS_END, NULL, 0},
};

const struct stored deepseek_attention[] = {
    {AS_LINEAR, "model.layers.#.self_attn.q_proj", LAYER(q)},
    {AS_LINEAR, "model.layers.#.self_attn.q_a_proj", LAYER(q_a)},
    {AS_NORM, "model.layers.#.self_attn.q_a_layernorm", LAYER(q_a_norm)},
    {AS_LINEAR, "model.layers.#.self_attn.q_b_proj", LAYER(q_b)},
    {AS_LINEAR, "model.layers.#.self_attn.kv_a_proj_with_mqa", LAYER(kv_a)},
    {AS_NORM, "model.layers.#.self_attn.kv_a_layernorm", LAYER(kv_a_norm)},
    {AS_LINEAR, "model.layers.#.self_attn.kv_b_proj", LAYER(kv_b)},
    {AS_LINEAR, "model.layers.#.self_attn.o_proj", LAYER(o)},
    {AS_END, NULL, 0},
};

const struct stored deepseek_experts[] = {
    {AS_LINEAR, "model.layers.#.mlp.gate", LAYER(router)},
    {AS_CORRECTION, "model.layers.#.mlp.gate.e_score_correction_bias", 0},
    {AS_EXPERTS, "model.layers.#.mlp.experts.@.gate_proj", MLP(gate)},
    {AS_EXPERTS, "model.layers.#.mlp.experts.@.up_proj", MLP(up)},
    {AS_EXPERTS, "model.layers.#.mlp.experts.@.down_proj", MLP(down)},
    {AS_LINEAR, "model.layers.#.mlp.shared_experts.gate_proj",
     LAYER(shared.gate)},
    {AS_LINEAR, "model.layers.#.mlp.shared_experts.up_proj",
     LAYER(shared.up)},
    {AS_LINEAR, "model.layers.#.mlp.shared_experts.down_proj",
     LAYER(shared.down)},
    {AS_END, NULL, 0},
};

/* ---- lmquant's own ---- */

const struct stored plain_attention[] = {
    {AS_LINEAR, "blk.#.attn_q", LAYER(q)},
    {AS_LINEAR, "blk.#.attn_k", LAYER(k)},
    {AS_LINEAR, "blk.#.attn_v", LAYER(v)},
    {AS_LINEAR, "blk.#.attn_output", LAYER(o)},
    {AS_SINKS, "blk.#.attn_sinks.weight", 0},
    {AS_END, NULL, 0},
};

const struct stored plain_qk_norms[] = {
    {AS_NORM, "blk.#.attn_q_norm", LAYER(q_norm)},
    {AS_NORM, "blk.#.attn_k_norm", LAYER(k_norm)},
    {AS_END, NULL, 0},
};

const struct stored plain_head_norms[] = {
    {AS_NORMS_OF_HEADS, "blk.#.attn_q_norm.@", LAYER(q_norm)},
    {AS_NORMS_OF_HEADS, "blk.#.attn_k_norm.@", LAYER(k_norm)},
    {AS_END, NULL, 0},
};

const struct stored plain_norms[] = {
    {AS_NORM, "blk.#.attn_norm", LAYER(attn_norm)},
    {AS_NORM, "blk.#.post_attention_norm", LAYER(attn_post_norm)},
    {AS_NORM, "blk.#.ffn_norm", LAYER(ffn_norm)},
    {AS_NORM, "blk.#.post_ffw_norm", LAYER(ffn_post_norm)},
    {AS_END, NULL, 0},
};

const struct stored plain_mlp[] = {
    {AS_LINEAR, "blk.#.ffn_gate", LAYER(mlp.gate)},
    {AS_LINEAR, "blk.#.ffn_up", LAYER(mlp.up)},
    {AS_LINEAR, "blk.#.ffn_down", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

const struct stored plain_experts[] = {
    {AS_LINEAR, "blk.#.ffn_gate_inp", LAYER(router)},
    {AS_CORRECTION, "blk.#.exp_probs_b.bias", 0},
    {AS_EXPERTS, "blk.#.ffn_gate.@", MLP(gate)},
    {AS_EXPERTS, "blk.#.ffn_up.@", MLP(up)},
    {AS_EXPERTS, "blk.#.ffn_down.@", MLP(down)},
    {AS_LINEAR, "blk.#.ffn_gate_shexp", LAYER(shared.gate)},
    {AS_LINEAR, "blk.#.ffn_up_shexp", LAYER(shared.up)},
    {AS_LINEAR, "blk.#.ffn_down_shexp", LAYER(shared.down)},
    {AS_LINEAR, "blk.#.ffn_gate_inp_shexp", LAYER(shared_switch)},
    {AS_END, NULL, 0},
};
