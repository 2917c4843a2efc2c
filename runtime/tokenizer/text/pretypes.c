/*
 * pretypes.c - the pre-tokenizers that GGUF files name.
 *
 * tokenizer.ggml.pre is a name for a list of patterns, each of which isolates
 * what it finds in the parts that the one before left. The names and which
 * pattern they mean are llama.cpp's (src/llama-vocab.cpp); where its pattern
 * works around its regex engine, the one of the model's tokenizer.json stands
 * here. A name that is missing is refused by the reader.
 */
#include "config.h"

#include <string.h>

#include "runtime/tokenizer/model/tok_pipeline.h"

#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define OTHER_START "[^\\r\\n\\p{L}\\p{N}]?"
#define SPACES_END "|\\s+(?!\\S)|\\s+"

const char lmq_pattern_gpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"
    SPACES_END;

const char lmq_pattern_llama3[] =
    CONTRACTION "|" OTHER_START "\\p{L}+|\\p{N}{1,3}"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+" SPACES_END;

/* Bailing's says the same with other quantifiers. */
const char lmq_pattern_qwen2[] =
    CONTRACTION "|" OTHER_START "\\p{L}+|\\p{N}"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+" SPACES_END;

const char lmq_pattern_gpt4o[] =
    OTHER_START UPPER "*" LOWER "+" CONTRACTION "?|"
    OTHER_START UPPER "+" LOWER "*" CONTRACTION "?|\\p{N}{1,3}"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+" SPACES_END;

static const char qwen35_pattern[] =
    CONTRACTION "|" OTHER_START "[\\p{L}\\p{M}]+|\\p{N}"
    "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+" SPACES_END;

static const char tekken_pattern[] =
    OTHER_START UPPER "*" LOWER "+|" OTHER_START UPPER "+" LOWER "*|\\p{N}"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+" SPACES_END;

/* Qwen's without the contractions of English: Turkish has an apostrophe,
 * too. */
static const char ufakzeka_pattern[] =
    OTHER_START "\\p{L}+|\\p{N}"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+" SPACES_END;

static const char seed_pattern[] =
    CONTRACTION "|" OTHER_START "\\p{L}+|\\p{N}"
    "| ?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+" SPACES_END;

static const char bloom_pattern[] =
    " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+";

#define DEEPSEEK_WORDS                                                        \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"                   \
    "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"

static const char deepseek_v3_pattern[] =
    DEEPSEEK_WORDS "| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+" SPACES_END;

static const char spark_pattern[] =
    DEEPSEEK_WORDS "| ?[\\p{P}\\p{S}]+|[\\r\\n]" SPACES_END;

/* The letters of scripts with case, as DeepSeek lists them. */
static const char deepseek_letters[] =
    "\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf"
    "\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f"
    "\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481"
    "\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd"
    "\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a"
    "\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57"
    "\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe"
    "\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec"
    "\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d"
    "\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f"
    "\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee"
    "\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787"
    "\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a"
    "\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3"
    "\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2"
    "\U000118a0-\U000118df\U0001e900-\U0001e943]+";

/* A letter, of which Kimi takes Han by themselves. */
#define NO_HAN "(?!\\p{Han})"
#define KIMI_UPPER "(?:" NO_HAN UPPER ")"
#define KIMI_LOWER "(?:" NO_HAN LOWER ")"

const char lmq_pattern_kimi[] =
    "\\p{Han}+|"
    OTHER_START KIMI_UPPER "*" KIMI_LOWER "+" CONTRACTION "?|"
    OTHER_START KIMI_UPPER "+" KIMI_LOWER "*" CONTRACTION "?|\\p{N}{1,3}"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+" SPACES_END;

static const char youtu_pattern[] =
    OTHER_START UPPER "*" LOWER "+" CONTRACTION "?|"
    OTHER_START UPPER "+" LOWER "*" CONTRACTION "?|\\p{N}"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+" SPACES_END;

static const char exaone_moe_pattern[] =
    CONTRACTION "|" OTHER_START "(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]" SPACES_END;

static const char jais2_pattern[] =
    CONTRACTION "|" OTHER_START "\\p{L}+|\\p{N}{1,3}"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+"
    "|\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)"
    "|\\s{32}(?!\\S)|\\s{16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)"
    "|\\s{1,2}(?!\\S)|\\s";

static const char minicpm5_pattern[] =
    CONTRACTION "|" OTHER_START "\\p{L}+|\\p{N}+"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+" SPACES_END;

#define HAN_AND_HANGUL "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"

static const char *const default_list[] = {
    "[\\p{P}\\$\\+<=>\\^~\\|]+", lmq_pattern_gpt2, "\\p{N}+",
    "[0-9][0-9][0-9]", NULL
};
static const char *const gpt2_list[] = { lmq_pattern_gpt2, NULL };
static const char *const llama3_list[] = { lmq_pattern_llama3, NULL };
static const char *const qwen2_list[] = { lmq_pattern_qwen2, NULL };
static const char *const qwen35_list[] = { qwen35_pattern, NULL };
static const char *const gpt4o_list[] = { lmq_pattern_gpt4o, NULL };
static const char *const tekken_list[] = { tekken_pattern, NULL };
static const char *const seed_list[] = { seed_pattern, NULL };
static const char *const ufakzeka_list[] = { ufakzeka_pattern, NULL };
static const char *const bloom_list[] = { bloom_pattern, NULL };
static const char *const viking_list[] = { bloom_pattern, "\\p{N}", NULL };
static const char *const digits_list[] = { "\\p{N}", lmq_pattern_gpt2, NULL };
static const char *const falcon_list[] = {
    "[\\p{P}\\$\\+<=>\\^~\\|`]+", lmq_pattern_gpt2, "[0-9][0-9][0-9]", NULL
};
/* White space at the end: with (?<!\s) a run is looked at once, not from each
 * of its characters. */
static const char *const deepseek_llm_list[] = {
    "[\\r\\n]", deepseek_letters,
    "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
    "(?<!\\s)\\s+\\z", HAN_AND_HANGUL, "\\p{N}+", NULL
};
static const char *const deepseek_coder_list[] = {
    "[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", HAN_AND_HANGUL, "\\p{N}", NULL
};
#define HAN_AND_KANA "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"

static const char *const deepseek_v3_list[] = {
    "\\p{N}{1,3}", HAN_AND_KANA, deepseek_v3_pattern, NULL
};
static const char *const spark_list[] = {
    "\\p{N}{1,3}", HAN_AND_KANA, spark_pattern, "\\p{N}", NULL
};

/* Digits by three from the right, in three ways. */
static const char *const superbpe_list[] = {
    "\\p{N}+", "(?=(\\d{3})+(?!\\d))", NULL
};
static const char *const tiny_aya_list[] = {
    "\\d{1,3}(?=(?:\\d{3})*\\b)", lmq_pattern_gpt4o, NULL
};
static const char *const afmoe_list[] = {
    "\\p{N}+", "\\A\\p{N}{1,2}(?=(?:\\p{N}{3})+\\z)|\\p{N}{3}",
    "[\u4e00-\u9fff\u3400-\u4dbf\u8c48-\ufaff\u3040-\u309f\u30a0-\u30ff"
    "\uff65-\uff9f\u2f00-\u2fdf\u0e40-\u0e7f\u0e80-\u0eff\u1780-\u17ff"
    "\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af"
    "\u1100-\u11ff]+",
    deepseek_v3_pattern, NULL
};
static const char *const kimi_list[] = { lmq_pattern_kimi, NULL };
static const char *const youtu_list[] = {
    "[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019"
    "\u2014\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+"
    "|" HAN_AND_KANA,
    youtu_pattern, NULL
};
static const char *const exaone_moe_list[] = { exaone_moe_pattern, NULL };
static const char *const jais2_list[] = { jais2_pattern, NULL };
static const char *const minicpm5_list[] = {
    "\\p{N}{1,3}", minicpm5_pattern, NULL
};
static const char *const laguna_list[] = {
    "[^\\n]+|\\n+", lmq_pattern_qwen2, NULL
};

/* The most usual of a kind first; llama.cpp warns of the last. */
static const struct lmq_pretype pretypes[] = {
    { "gpt-2", gpt2_list, false, false },
    { "phi-2", gpt2_list, false, false },
    { "mpt", gpt2_list, false, false },
    { "olmo", gpt2_list, false, false },
    { "jais", gpt2_list, false, false },
    { "trillion", gpt2_list, false, false },
    { "granite-docling", gpt2_list, false, false },
    { "exaone4", gpt2_list, false, false },
    { "gigachat", gpt2_list, false, false },
    { "a.x-4.0", gpt2_list, false, false },
    { "mellum", gpt2_list, false, false },

    { "llama-bpe", llama3_list, true, true },
    { "llama3", llama3_list, true, true },
    { "llama-v3", llama3_list, true, true },
    { "falcon3", llama3_list, true, true },
    { "falcon-h1", llama3_list, true, true },
    { "pixtral", llama3_list, true, true },
    { "midm-2.0", llama3_list, true, true },
    { "lfm2", llama3_list, true, true },
    { "glm4", llama3_list, true, false },
    { "glm5", llama3_list, true, false },
    { "dbrx", llama3_list, false, false },
    { "smaug-bpe", llama3_list, false, false },
    { "chatglm-bpe", llama3_list, false, false },

    { "qwen2", qwen2_list, false, false },
    { "deepseek-r1-qwen", qwen2_list, false, false },
    { "kormo", qwen2_list, false, false },
    { "f2llmv2", qwen2_list, false, false },
    { "megrez", qwen2_list, false, false },
    { "stablelm2", qwen2_list, false, false },
    { "hunyuan", qwen2_list, false, false },
    { "solar-open", qwen2_list, false, false },
    { "grok-2", qwen2_list, false, false },
    { "bailingmoe", qwen2_list, false, false },
    { "bailingmoe2", qwen2_list, false, false },
    { "llada-moe", qwen2_list, false, false },

    { "smollm", digits_list, false, false },
    { "starcoder", digits_list, false, false },
    { "refact", digits_list, false, false },
    { "command-r", digits_list, false, false },
    { "codeshell", digits_list, false, false },
    { "exaone", digits_list, false, false },
    { "minerva-7b", digits_list, false, false },
    { "mellum2", digits_list, false, false },

    { "falcon", falcon_list, false, false },
    { "deepseek-llm", deepseek_llm_list, false, false },
    { "deepseek-v3", deepseek_v3_list, false, false },
    { "hunyuan-dense", deepseek_v3_list, false, false },
    { "joyai-llm", deepseek_v3_list, false, false },
    { "hy_v4", deepseek_v3_list, false, false },
    { "deepseek-coder", deepseek_coder_list, false, false },
    { "tekken", tekken_list, true, true },
    { "gpt-4o", gpt4o_list, false, false },
    { "llama4", gpt4o_list, false, false },
    { "kanana2", gpt4o_list, false, false },
    { "minimax-m2", gpt4o_list, false, false },
    { "talkie", gpt4o_list, false, false },

    { "bloom", bloom_list, false, false },
    { "poro-chat", bloom_list, false, false },
    { "gpt3-finnish", bloom_list, false, false },
    { "viking", viking_list, false, false },

    { "seed-coder", seed_list, false, false },
    { "qwen35", qwen35_list, false, false },
    { "afmoe", afmoe_list, false, false },
    { "kimi-k2", kimi_list, false, false },
    { "youtu", youtu_list, true, false },
    { "exaone-moe", exaone_moe_list, false, false },
    { "jais-2", jais2_list, false, false },
    { "minicpm5", minicpm5_list, true, false },
    { "laguna", laguna_list, false, false },
    { "tiny_aya", tiny_aya_list, false, false },
    { "cohere2moe", tiny_aya_list, false, false },
    { "superbpe", superbpe_list, false, false },
    { "spark2_5", spark_list, false, false },
    { "ufakzeka", ufakzeka_list, false, false },

    { "default", default_list, false, false },
};

const struct lmq_pretype *
lmq_pretype_find(struct lmq_chars name)
{
    for (size_t i = 0; i < sizeof(pretypes) / sizeof(pretypes[0]); i++)
        if (lmq_chars_equal(name, lmq_chars(pretypes[i].name,
                                            strlen(pretypes[i].name))))
            return &pretypes[i];
    return NULL;
}

/* Those before it that split in the same way are other names for it. */
static bool
is_new_kind(const struct lmq_pretype *pretype)
{
    for (const struct lmq_pretype *p = pretypes; p < pretype; p++)
        if (p->patterns == pretype->patterns &&
            p->prefers_whole == pretype->prefers_whole)
            return false;
    return true;
}

const struct lmq_pretype *
lmq_pretype_next(const struct lmq_pretype *p)
{
    const struct lmq_pretype *end =
        pretypes + sizeof(pretypes) / sizeof(pretypes[0]);

    p = p == NULL ? pretypes : p + 1;
    while (p < end && !is_new_kind(p))
        p++;
    return p < end ? p : NULL;
}

enum lmq_status
lmq_pretype_split(struct lmq_tokenizer *t, const struct lmq_pretype *pretype,
                  struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; pretype->patterns[i] != NULL && status == LMQ_OK; i++) {
        const char *pattern = pretype->patterns[i];
        status = lmq_pipeline_split_at(t, lmq_chars(pattern, strlen(pattern)),
                                       false, LMQ_SPLIT_ISOLATED, false, err);
    }
    return status;
}
