/*
 * family_gguf.c - families that GGUF does not know, and why.
 */
#include "config.h"

#include <string.h>

#include "tests/families/family.h"

/* What GGUF has no words for, by the table's names. */
static const struct {
    const char *family, *reason;
} refused[] = {
    {"llama-dynamic", "rope_scaling"}, {"deepseek2", "rope_attention_factor"},
    {"falcon-rw", "has no words"}, {"falcon-rw-heads", "has no words"},
    {"qwen3moe-dense-layer", "has no experts, it would be taken for one with"},
    {"qwen3next", "a delta rule of"}, {"qwen35", "a delta rule of"},
    {"llama4", "attention_chunk"}, {"hy4", "rows"}, {"minimax01", "delta_keep"},
    {"mimo2-library", "has no experts, it would be taken for one with"},
    {"granite-swa", "rope_local_theta"}, {"laguna-full", "router_softcap"},
    {"minimax-m3", "has tensors that"}, {"glm5-next", "n_delta_key_heads"},
    {"deepseek4-library", "a 9 in 'attention.compress_ratios'"},
    {"qwen4", "chooses by"},
};

static const char *const nameless[] = {
    "gptj", "codegen", "persimmon", "opt", "vaultgemma", "flex-olmo",
    "hyperclova", "minicpm3", "gpt-neo", "nanochat", "flint", "kolibri1",
    "phimoe", "lfm3", "olmo_hybrid", "olmo_hybrid-turning",
    "olmo_hybrid-library", "axk1", "axk1-library", "axk2", "plm", "ouro",
    "recurrent_gemma", "cohere_compass", "mistral_large4",
    "dots3note",
};

const char *
family_without_gguf(const struct family *family, const char *architecture)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (strcmp(refused[i].family, family->name) == 0)
            return refused[i].reason;
    for (size_t i = 0; i < sizeof(nameless) / sizeof(nameless[0]); i++)
        if (strcmp(nameless[i], family->name) == 0)
            return "no name";
    return strcmp(architecture, "variant") == 0 ? "no name" : NULL;
}
