/*
 * test_export_hf.c - exports to safetensors: the weights, and the description
 * in Hugging Face's words.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/files/temporary.h"
#include "convert/export/hf/export_hf.h"
#include "formats/hf/hf_config.h"
#include "formats/model/hparams_compare.h"
#include "formats/model/hparams_json.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"
#include "tests/convert/exports.h"
#include "tests/families/family.h"

/* ---- safetensors ---- */

static const struct lmq_export_options safetensors = {.to = "safetensors"};

START_TEST(safetensors_are_the_same_model_under_its_own_names)
{
    struct build_model *model = build_model(&build_small, 5);
    const char *from = in_folder("m.lmq"), *to = in_folder("out");

    save_folder(model, in_folder("model"), BUILD_F32);
    lmq_report_free(convert(in_folder("model"), from, NULL));
    struct lmq_report *report = export_to(from, to, &safetensors);
    ck_assert_str_eq(lmq_report_string(report, "names"), "huggingface");
    ck_assert_double_eq(lmq_report_number(report, "is_lossless"), 1);
    lmq_report_free(report);
    assert_identical(from, to);
    struct lmq_checkpoint *a = open_checkpoint(in_folder("model"));
    struct lmq_checkpoint *b = open_checkpoint(to);
    ck_assert_uint_eq(a->n_tensors, b->n_tensors);
    for (size_t i = 0; i < a->n_tensors; i++)
        ck_assert_str_eq(a->tensors[i].stored_name, b->tensors[i].stored_name);
    json_t *x = lmq_hparams_to_json(&a->hparams);
    json_t *y = lmq_hparams_to_json(&b->hparams);
    ck_assert(json_equal(x, y));
    ck_assert_int_eq(a->hparams.tie, b->hparams.tie);
    json_decref(x);
    json_decref(y);
    lmq_checkpoint_close(a);
    lmq_checkpoint_close(b);
    build_free(model);
}
END_TEST

START_TEST(shards_are_as_large_as_was_asked)
{
    struct build_model *model = build_model(&even, 5);
    const struct lmq_export_options options = {.to = "safetensors",
                                               .shard_size = 30000};
    const char *to = in_folder("out");

    save_folder(model, in_folder("model"), BUILD_F32);
    struct lmq_report *report = export_to(in_folder("model"), to, &options);
    const struct lmq_report *files = lmq_report_at(report, "files");
    size_t n = lmq_report_length(files);
    ck_assert_uint_ge(n, 8);
    for (size_t i = 0; i < n; i++) /* and a header */
        ck_assert_double_le(
            lmq_report_number(lmq_report_item(files, i), "bytes"), 32000);
    ck_assert_str_eq(
        lmq_report_string(lmq_report_item(files, n - 1), "name"),
        "config.json");
    lmq_report_free(report);
    assert_identical(in_folder("model"), to);
    ck_assert(exists(in_folder("out/model.safetensors.index.json")));
    build_free(model);
}
END_TEST

START_TEST(narrow_types_round_and_say_so)
{
    static const struct {
        const char *name;
        enum build_type type;
        double tolerance;
    } types[] = {{"f16", BUILD_F16, 0x1p-11}, {"bf16", BUILD_BF16, 0x1p-8}};
    struct build_model *model = build_model(&build_small, 5);
    char folder[16], exact[16];

    for (size_t t = 0; t < 2; t++) {
        const struct lmq_export_options options = {.to = "safetensors",
                                                   .type = types[t].name};
        snprintf(folder, sizeof(folder), "out-%s", types[t].name);
        snprintf(exact, sizeof(exact), "exact-%s", types[t].name);
        save_folder(model, in_folder("model"), BUILD_F32);
        struct lmq_report *report =
            export_to(in_folder("model"), in_folder(folder), &options);
        ck_assert_double_eq(lmq_report_number(report, "is_lossless"), 0);
        lmq_report_free(report);
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(in_folder(folder));
        for (size_t i = 0; i < model->n_tensors; i++) {
            size_t n;
            float *x = read_tensor(checkpoint, model->tensors[i].name, &n);
            for (size_t j = 0; j < n; j++) {
                double wanted = (double)model->tensors[i].x[j];
                REQUIRE(fabs((double)x[j] - wanted) <=
                            types[t].tolerance * fmax(fabs(wanted), 0x1p-14),
                        "%s, element %zu", model->tensors[i].name, j);
            }
            free(x);
        }
        lmq_checkpoint_close(checkpoint);
        /* What has been rounded once is held as it is. */
        report = export_to(in_folder(folder), in_folder(exact), &options);
        ck_assert_double_eq(lmq_report_number(report, "is_lossless"), 1);
        lmq_report_free(report);
        assert_identical(in_folder(folder), in_folder(exact));
    }
    build_find(model, "layers.0.mlp.up_proj.weight")->x[3] = 1e6f;
    save_folder(model, in_folder("model"), BUILD_F32);
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("model"));
    assert_export_refuses(checkpoint, in_folder("large"),
                          &(struct lmq_export_options){.to = "safetensors",
                                                       .type = "f16"},
                          LMQ_ERR_NONFINITE, "element 3 is 1e+06, which f16");
    assert_export_refuses(checkpoint, in_folder("large"),
                          &(struct lmq_export_options){.to = "safetensors",
                                                       .type = "f64"},
                          LMQ_ERR_ARG, "'f64'");
    lmq_checkpoint_close(checkpoint);
    build_free(model);
}
END_TEST

START_TEST(float64_is_rounded_and_told)
{
    static const char *const formats[] = {"safetensors", "gguf"};
    struct build_model *model = build_model(&even, 5);

    save_folder(model, in_folder("model"), BUILD_F64);
    for (size_t i = 0; i < 2; i++) {
        const struct lmq_export_options options = {.to = formats[i]};
        struct lmq_report *report =
            export_to(in_folder("model"), in_folder(formats[i]), &options);
        const struct lmq_report *notes = lmq_report_at(report, "notes");
        size_t n = lmq_report_length(notes);
        ck_assert_double_eq(lmq_report_number(report, "is_lossless"), 0);
        ck_assert_uint_ge(n, 1);
        lmq_report_free(report);
    }
    build_free(model);
}
END_TEST

START_TEST(a_folder_with_something_in_it_is_left_alone)
{
    const struct lmq_export_options force = {.to = "safetensors",
                                             .replaces = 1};
    struct build_model *model = build_model(&build_small, 5);
    struct build_model *other = build_model(&build_small, 6);
    const char *to = in_folder("out");

    save_folder(model, in_folder("model"), BUILD_F32);
    save_folder(other, to, BUILD_F32);
    write_file(in_folder("out/model.safetensors.index.json"), "{}", 2);
    write_file(in_folder("file"), "x", 1);
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("model"));
    assert_export_refuses(checkpoint, to, &safetensors, LMQ_ERR_IO,
                          "is not empty");
    assert_export_refuses(checkpoint, in_folder("file"), &force, LMQ_ERR_IO,
                          "is no folder");
    assert_export_refuses(checkpoint, in_folder("model"), &force, LMQ_ERR_ARG,
                          "is where the checkpoint is");
    assert_export_refuses(checkpoint, in_folder("no/where"), &force,
                          LMQ_ERR_IO, "cannot write into");
    lmq_checkpoint_close(checkpoint);
    lmq_report_free(export_to(in_folder("model"), to, &force));
    ck_assert(!exists(in_folder("out/model.safetensors.index.json")));
    assert_identical(in_folder("model"), to);
    checkpoint = open_checkpoint(in_folder("model/model.safetensors"));
    assert_export_refuses(checkpoint, in_folder("model"), &force, LMQ_ERR_ARG,
                          "is where the checkpoint is");
    lmq_checkpoint_close(checkpoint);
    /* What a process left that was killed is nothing. */
    ck_assert_int_eq(mkdir(in_folder("new"), 0777), 0);
    char *left = lmq_temporary_lock(in_folder("new"));
    write_file(left, "", 0);
    lmq_report_free(
        export_to(in_folder("model"), in_folder("new"), &safetensors));
    ck_assert(!exists(left));
    free(left);
    build_free(model);
    build_free(other);
}
END_TEST

/* Others read model.safetensors where there is one, whatever an index says. */
START_TEST(nothing_of_a_replaced_model_is_taken_for_the_new_one)
{
    const struct lmq_export_options force = {
        .to = "safetensors", .replaces = 1, .shard_size = 30000};
    struct build_model *model = build_model(&even, 5);
    struct build_model *other = build_model(&even, 6);
    const char *to = in_folder("out");

    save_folder(model, in_folder("model"), BUILD_F32);
    save_folder(other, to, BUILD_F32);
    write_file(in_folder("out/tokenizer_config.json"), "{}", 2);
    struct lmq_report *report = export_to(in_folder("model"), to, &force);
    ck_assert(!exists(in_folder("out/model.safetensors")));
    ck_assert(exists(in_folder("out/tokenizer_config.json")));
    ck_assert_ptr_nonnull(
        strstr(lmq_report_string(report, "notes.0"),
               "tokenizer_config.json was in the folder before"));
    lmq_report_free(report);
    assert_identical(in_folder("model"), to);
    build_free(model);
    build_free(other);
}
END_TEST

/* ---- Hugging Face's words ---- */

#define SIZES                                                                 \
    "\"hidden_size\": 64, \"intermediate_size\": 96, "                        \
    "\"num_hidden_layers\": 4, \"num_attention_heads\": 4, "                  \
    "\"num_key_value_heads\": 2, \"vocab_size\": 41, "                        \
    "\"max_position_embeddings\": 512, \"bos_token_id\": 1, "                 \
    "\"eos_token_id\": [2, 7], "

static const struct {
    const char *config;
    bool has_qkv_bias;
} configs[] = {
    {"{\"architectures\": [\"LlamaForCausalLM\"], " SIZES
     "\"rope_theta\": 500000, \"rope_scaling\": {\"rope_type\": \"llama3\", "
     "\"factor\": 8, \"low_freq_factor\": 1, \"high_freq_factor\": 4, "
     "\"original_max_position_embeddings\": 128}}", false},
    {"{\"architectures\": [\"LlamaForCausalLM\"], " SIZES
     "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.5}}", false},
    {"{\"architectures\": [\"LlamaForCausalLM\"], " SIZES
     "\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2}}", false},
    {"{\"architectures\": [\"MistralForCausalLM\"], " SIZES
     "\"sliding_window\": 128, \"head_dim\": 32}", false},
    {"{\"architectures\": [\"MixtralForCausalLM\"], " SIZES
     "\"num_local_experts\": 4, \"num_experts_per_tok\": 2}", false},
    {"{\"architectures\": [\"Qwen2ForCausalLM\"], " SIZES
     "\"use_sliding_window\": true, \"sliding_window\": 64, "
     "\"max_window_layers\": 2, \"rope_scaling\": {\"type\": \"yarn\", "
     "\"factor\": 4, \"original_max_position_embeddings\": 128}}", true},
    {"{\"architectures\": [\"Qwen2MoeForCausalLM\"], " SIZES
     "\"num_experts\": 4, \"num_experts_per_tok\": 2, "
     "\"moe_intermediate_size\": 32, \"shared_expert_intermediate_size\": 48, "
     "\"decoder_sparse_step\": 2}", true},
    {"{\"architectures\": [\"Qwen3ForCausalLM\"], " SIZES
     "\"head_dim\": 32}", false},
    {"{\"architectures\": [\"Qwen3MoeForCausalLM\"], " SIZES
     "\"num_experts\": 4, \"num_experts_per_tok\": 2, "
     "\"moe_intermediate_size\": 32, \"norm_topk_prob\": true}", false},
    {"{\"architectures\": [\"GemmaForCausalLM\"], " SIZES
     "\"head_dim\": 16}", false},
    {"{\"architectures\": [\"Gemma2ForCausalLM\"], " SIZES
     "\"head_dim\": 16, \"query_pre_attn_scalar\": 144, "
     "\"sliding_window\": 64}", false},
    {"{\"architectures\": [\"Gemma3ForCausalLM\"], " SIZES
     "\"head_dim\": 16, \"sliding_window\": 64, "
     "\"sliding_window_pattern\": 3, \"rope_local_base_freq\": 10000, "
     "\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 8}}", false},
    {"{\"architectures\": [\"GraniteForCausalLM\"], " SIZES
     "\"embedding_multiplier\": 12, \"residual_multiplier\": 0.22, "
     "\"logits_scaling\": 8, \"attention_multiplier\": 0.015625}", false},
    {"{\"architectures\": [\"OlmoForCausalLM\"], " SIZES
     "\"clip_qkv\": 8}", false},
    {"{\"architectures\": [\"Olmo2ForCausalLM\"], " SIZES
     "\"rms_norm_eps\": 1e-6}", false},
    {"{\"architectures\": [\"SmolLM3ForCausalLM\"], " SIZES
     "\"no_rope_layers\": [1, 1, 1, 0]}", false},
    {"{\"architectures\": [\"StableLmForCausalLM\"], " SIZES
     "\"partial_rotary_factor\": 0.5, \"qk_layernorm\": true}", false},
};

START_TEST(descriptions_of_llamas_relatives_go_there_and_back)
{
    static const enum lmq_role biased[] = {LMQ_ROLE_ATTN_Q, LMQ_ROLE_ATTN_K,
                                           LMQ_ROLE_ATTN_V};

    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        struct lmq_tensor tensors[12] = {{0}};
        struct lmq_checkpoint *checkpoint = calloc(1, sizeof(*checkpoint));
        struct lmq_hf_words words;
        struct lmq_error err = {0};
        const char *text = configs[i].config;
        lmq_hparams_init(&checkpoint->hparams);
        ck_assert_msg(lmq_config_parse((const unsigned char *)text,
                                       strlen(text), &checkpoint->hparams,
                                       &checkpoint->source,
                                       &checkpoint->has_model,
                                       &err) == LMQ_OK,
                      "%zu: %s", i, err.message);
        for (size_t j = 0; j < 12 && configs[i].has_qkv_bias; j++) {
            tensors[j].place =
                (struct lmq_place){biased[j % 3], LMQ_PART_BIAS,
                                   (int32_t)(j / 3), -1};
            checkpoint->n_tensors = 12;
        }
        checkpoint->tensors = tensors;
        ck_assert_int_eq(lmq_hf_words_find(checkpoint, "float32", &words,
                                           &checkpoint->notes, &err),
                         LMQ_OK);
        ck_assert_msg(words.family != NULL, "%zu: %s", i,
                      checkpoint->hparams.architecture);
        ck_assert_int_eq(words.norms_less_one,
                         checkpoint->source.norms_less_one);
        const json_t *scalar =
            json_object_get(words.config, "query_pre_attn_scalar");
        ck_assert(scalar == NULL || json_is_integer(scalar));
        lmq_hf_words_free(&words);
        lmq_notes_free(&checkpoint->notes);
        free(checkpoint);
    }
}
END_TEST

/* The bytes themselves, which are float32; 1 is not added to them. */
static void
assert_stored_alike(struct lmq_checkpoint *a, const struct lmq_tensor *x,
                    struct lmq_checkpoint *b, const struct lmq_tensor *y)
{
    unsigned char bytes_a[256], bytes_b[256];
    struct lmq_error err;

    ck_assert_uint_eq(x->size_bytes, sizeof(bytes_a));
    ck_assert_uint_eq(y->size_bytes, sizeof(bytes_b));
    ck_assert_int_eq(lmq_input_read(a->files[0], x->offset, bytes_a,
                                    sizeof(bytes_a), &err),
                     LMQ_OK);
    ck_assert_int_eq(lmq_input_read(b->files[0], y->offset, bytes_b,
                                    sizeof(bytes_b), &err),
                     LMQ_OK);
    for (size_t i = 0; i < sizeof(bytes_a); i += 4)
        REQUIRE(fabsf(lmq_load_f32le(bytes_a + i) -
                      lmq_load_f32le(bytes_b + i)) <= 0x1p-23f,
                "%s, byte %zu", x->name, i);
}

/* Norms are stored minus 1, and two of them stand behind. */
START_TEST(gemma_is_exported_as_gemma_is_stored)
{
    static const char *const norms[] = {"pre_feedforward_layernorm",
                                        "post_feedforward_layernorm"};
    struct build_model *model = build_model(&even, 5);
    const uint64_t width[] = {64};
    struct bytes config = {0};
    char name[96];

    for (uint32_t l = 0; l < 2; l++)
        for (size_t i = 0; i < 2; i++) {
            snprintf(name, sizeof(name), "model.layers.%u.%s.weight", l,
                     norms[i]);
            struct build_tensor *norm = build_add(model, name, width, 1);
            for (size_t j = 0; j < 64; j++)
                norm->x[j] = 0.01f * (float)(l + i) - 0.003f * (float)j;
        }
    save_folder(model, in_folder("model"), BUILD_F32);
    put_text(&config,
             "{\"architectures\": [\"Gemma2ForCausalLM\"], "
             "\"hidden_size\": 64, \"intermediate_size\": 96, "
             "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, "
             "\"num_key_value_heads\": 2, \"vocab_size\": 41, "
             "\"head_dim\": 16, \"query_pre_attn_scalar\": 16, "
             "\"sliding_window\": 64}");
    save(&config, in_folder("model/config.json"));
    lmq_report_free(convert(in_folder("model"), in_folder("m.lmq"), NULL));
    struct lmq_report *report =
        export_to(in_folder("m.lmq"), in_folder("out"), &safetensors);
    ck_assert_str_eq(lmq_report_string(report, "names"), "huggingface");
    lmq_report_free(report);
    assert_identical(in_folder("m.lmq"), in_folder("out"));
    struct lmq_checkpoint *a = open_checkpoint(in_folder("model"));
    struct lmq_checkpoint *b = open_checkpoint(in_folder("out"));
    ck_assert_uint_eq(a->n_tensors, b->n_tensors);
    for (size_t i = 0; i < a->n_tensors; i++) {
        ck_assert_str_eq(a->tensors[i].stored_name, b->tensors[i].stored_name);
        if (a->tensors[i].n_dims == 1)
            assert_stored_alike(a, &a->tensors[i], b, &b->tensors[i]);
    }
    lmq_checkpoint_close(a);
    lmq_checkpoint_close(b);
    /* GGUF does not tell the scale, which is the usual one. */
    const struct lmq_export_options as_gguf = {.to = "gguf"};
    lmq_report_free(
        export_to(in_folder("m.lmq"), in_folder("m.gguf"), &as_gguf));
    report = export_to(in_folder("m.gguf"), in_folder("again"), &safetensors);
    ck_assert_str_eq(lmq_report_string(report, "names"), "huggingface");
    lmq_report_free(report);
    assert_identical(in_folder("m.gguf"), in_folder("again"));
    bytes_free(&config);
    build_free(model);
}
END_TEST

/* By the name that GGUF has for it few know it. */
START_TEST(a_llama_by_another_name_is_written_as_a_llama)
{
    struct family_model *model =
        family_make(family_find("xverse"), 1, 0, 1);

    family_write(model, in_folder("model"));
    family_free(model);
    struct lmq_report *report =
        export_to(in_folder("model"), in_folder("out"), &safetensors);
    ck_assert_str_eq(lmq_report_string(report, "names"), "huggingface");
    lmq_report_free(report);
    assert_equal_weights(in_folder("model"), in_folder("out"));
    struct lmq_checkpoint *from = open_checkpoint(in_folder("model"));
    struct lmq_checkpoint *to = open_checkpoint(in_folder("out"));
    ck_assert_str_eq(to->hparams.architecture, "llama");
    snprintf(to->hparams.architecture, sizeof(to->hparams.architecture),
             "%s", from->hparams.architecture);
    ck_assert(lmq_hparams_are_same(&from->hparams, &to->hparams));
    lmq_checkpoint_close(from);
    lmq_checkpoint_close(to);
}
END_TEST

/* A family whose words are not known gets lmquant's own. */
START_TEST(other_families_keep_canonical_names)
{
    struct build_model *model = build_model(&even, 5);

    save_folder(model, in_folder("model"), BUILD_F32);
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("model"));
    struct lmq_report *report;
    struct lmq_error err;
    snprintf(checkpoint->hparams.architecture,
             sizeof(checkpoint->hparams.architecture), "phi3");
    checkpoint->hparams.attn_softcap = 30;
    ck_assert_int_eq(lmq_export(checkpoint, in_folder("out"), &safetensors,
                                NULL, &report, &err),
                     LMQ_OK);
    ck_assert_str_eq(lmq_report_string(report, "names"), "canonical");
    lmq_report_free(report);
    lmq_checkpoint_close(checkpoint);
    assert_equal_weights(in_folder("model"), in_folder("out"));
    checkpoint = open_checkpoint(in_folder("out"));
    ck_assert(checkpoint->has_model);
    ck_assert_str_eq(checkpoint->hparams.architecture, "phi3");
    ck_assert_double_eq(checkpoint->hparams.attn_softcap, 30);
    ck_assert_str_eq(checkpoint->tensors[0].stored_name, "token_embd.weight");
    lmq_checkpoint_close(checkpoint);
    build_free(model);
}
END_TEST

/* The list in lmquant-export(1), with a blank before it. */
static char *
read_list(void)
{
    static const char before[] = "are those of Hugging Face's libraries: ";
    size_t n;
    char *page = (char *)read_file(source_path("../man/lmquant-export.1"), &n);
    char *list = calloc(n + 1, 1);

    ck_assert_ptr_nonnull(list);
    memcpy(list, page, n);
    free(page);
    const char *begin = strstr(list, before);
    ck_assert_ptr_nonnull(begin);
    begin += strlen(before) - 1;
    n = strcspn(begin, ".");
    memmove(list, begin, n);
    list[n] = '\0';
    return list;
}

static char *
find_in_list(char *list, const char *name)
{
    size_t n = strlen(name);

    for (char *at = list; (at = strstr(at, name)) != NULL; at += n)
        if (strchr(" \n", at[-1]) != NULL && (at[n] == ',' || at[n] == '\0'))
            return at;
    return NULL;
}

START_TEST(the_manual_lists_the_families_with_words)
{
    const struct lmq_export_options over = {.to = "safetensors",
                                            .replaces = 1};
    char *listed = read_list(), *missed = read_list();
    const struct family *family;

    for (size_t i = 0; (family = family_at(i)) != NULL; i++) {
        struct family_model *model = family_make(family, 1, 0, 1);
        family_write(model, in_folder("model"));
        family_free(model);
        struct lmq_report *report =
            export_to(in_folder("model"), in_folder("out"), &over);
        bool has_words = strcmp(lmq_report_string(report, "names"),
                                "huggingface") == 0;
        lmq_report_free(report);
        if (!has_words)
            continue;
        struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("out"));
        const char *name = checkpoint->hparams.architecture;
        REQUIRE(find_in_list(listed, name) != NULL, "%s is not listed", name);
        char *first = find_in_list(missed, name);
        if (first != NULL)
            memset(first, ' ', strlen(name));
        lmq_checkpoint_close(checkpoint);
    }
    REQUIRE(missed[strspn(missed, " \n,")] == '\0', "of these no model: %s",
            missed);
    free(listed);
    free(missed);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        safetensors_are_the_same_model_under_its_own_names,
        shards_are_as_large_as_was_asked,
        narrow_types_round_and_say_so,
        float64_is_rounded_and_told,
        a_folder_with_something_in_it_is_left_alone,
        nothing_of_a_replaced_model_is_taken_for_the_new_one,
        descriptions_of_llamas_relatives_go_there_and_back,
        gemma_is_exported_as_gemma_is_stored,
        a_llama_by_another_name_is_written_as_a_llama,
        other_families_keep_canonical_names,
        the_manual_lists_the_families_with_words,
    };

    return RUN_SUITE("export_hf", tests);
}
