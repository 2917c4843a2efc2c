/*
 * packer.c - what the schemes of packed weights share.
 *
 * A packed matrix is several tensors with one name before different endings:
 * codes in words (".qweight"), scales, zero points, groups of the columns.
 * Each is checked against the shape that the codes give before it is read.
 */
#include "config.h"

#include "formats/packed/packer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/report.h"
#include "base/size.h"
#include "base/text/c_locale.h"

/* ---- The configuration ---- */

static bool
is_text(const json_t *value)
{
    return json_is_string(value);
}

static bool
is_number(const json_t *value)
{
    return json_is_integer(value);
}

/* -1 stands for the whole row. */
static bool
is_group(const json_t *value)
{
    json_int_t n = json_integer_value(value);

    return json_is_integer(value) && n >= -1 && n != 0 && n <= LMQ_MAX_WIDTH;
}

/* AutoRound gives the size of blocks there, too. */
static bool
is_group_or_block(const json_t *value)
{
    return is_group(value) || (json_array_size(value) == 2 &&
                               is_group(json_array_get(value, 0)) &&
                               is_group(json_array_get(value, 1)));
}

static bool
is_names(const json_t *value)
{
    bool is_right = json_is_array(value);

    for (size_t i = 0; i < json_array_size(value); i++)
        is_right &= json_is_string(json_array_get(value, i));
    return is_right;
}

static bool
is_groups(const json_t *value)
{
    bool is_right = json_is_object(value);
    const char *name;
    json_t *group;

    json_object_foreach((json_t *)(uintptr_t)value, name, group)
        is_right &= json_is_object(group);
    return is_right;
}

/* The names of matrices that are left as they were, by many tools. */
static const char *const ignores[] = {
    "ignore", "modules_to_not_convert", "exclude_modules",
    "llm_int8_skip_modules"};

static enum lmq_status
check_value(const struct lmq_packer *packer, const char *key,
            bool (*is_right)(const json_t *value), const char *wanted,
            struct lmq_error *err)
{
    const json_t *found = json_object_get(packer->config, key);

    if (found == NULL || json_is_null(found) || is_right(found))
        return LMQ_OK;
    return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                    "'%s' of the quantization is not %s", key, wanted);
}

static enum lmq_status
gather_ignored(struct lmq_packer *packer, struct lmq_error *err)
{
    packer->plain = json_object();
    for (size_t i = 0; i < sizeof(ignores) / sizeof(ignores[0]); i++) {
        json_t *name, *list = json_object_get(packer->config, ignores[i]);
        size_t j;
        json_array_foreach(list, j, name)
            lmq_put(&packer->plain, json_string_value(name),
                    json_string(ignores[i]));
    }
    return packer->plain == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

enum lmq_status
lmq_packer_check_config(struct lmq_packer *packer, struct lmq_error *err)
{
    static const struct {
        const char *key;
        bool (*is_right)(const json_t *value);
        const char *wanted;
    } rules[] = {
        {"quant_method", is_text, "text"},
        {"format", is_text, "text"},
        {"checkpoint_format", is_text, "text"},
        {"mode", is_text, "text"},
        {"data_type", is_text, "text"},
        {"packing_format", is_text, "text"},
        {"weight_scale_semantics", is_text, "text"},
        {"bits", is_number, "a whole number"},
        {"w_bit", is_number, "a whole number"},
        {"group_size", is_group_or_block, "a size, -1, or a pair of sizes"},
        {"q_group_size", is_group, "a size, or -1"},
        {"config_groups", is_groups, "an object of objects"},
    };

    enum lmq_status status = LMQ_OK;

    for (size_t i = 0;
         i < sizeof(rules) / sizeof(rules[0]) && status == LMQ_OK; i++)
        status = check_value(packer, rules[i].key, rules[i].is_right,
                             rules[i].wanted, err);
    for (size_t i = 0;
         i < sizeof(ignores) / sizeof(ignores[0]) && status == LMQ_OK; i++)
        status = check_value(packer, ignores[i], is_names, "a list of names",
                             err);
    return status == LMQ_OK ? gather_ignored(packer, err) : status;
}

/* Whether the configuration says that this one, by its full name, is not
 * packed. */
static enum lmq_status
check_ignored(const struct lmq_packer *packer, const struct lmq_tensor *tensor,
              const char *ending, struct lmq_error *err)
{
    const char *name = tensor->stored_name;
    size_t n = strlen(name) - strlen(ending);
    char stem[LMQ_MAX_TENSOR_NAME];

    if (*ending == '\0' && n > 7 && strcmp(name + n - 7, ".weight") == 0)
        n -= 7;
    snprintf(stem, sizeof(stem), "%.*s", (int)n, name);
    const char *list =
        json_string_value(json_object_get(packer->plain, stem));
    if (list == NULL)
        return LMQ_OK;
    return lmq_fail(err, LMQ_ERR_FORMAT, tensor->offset,
                    "'%s' is packed, but '%s' in config.json has '%s'", name,
                    list, stem);
}

/* A value of another type counts as absent: what must be there is held against
 * the tensors anyway. */
int64_t
lmq_packer_number(const json_t *config, const char *key, int64_t absent)
{
    const json_t *found = json_object_get(config, key);

    return json_is_integer(found) ? json_integer_value(found) : absent;
}

static bool
has_step(const json_t *layer, bool (*is_such)(const json_t *step))
{
    const json_t *weight = json_object_get(layer, "weight");
    size_t n = json_is_array(weight) ? json_array_size(weight) : 1;
    bool has_one = false;

    for (size_t i = 0; i < n; i++)
        has_one |= is_such(json_is_array(weight) ? json_array_get(weight, i)
                                                 : weight);
    return has_one;
}

bool
lmq_packer_has_step(const struct lmq_packer *packer,
                    bool (*is_such)(const json_t *step))
{
    static const char *const keys[] = {"layer_quant_config",
                                       "layer_type_quant_config"};
    bool has_one = has_step(
        json_object_get(packer->config, "global_quant_config"), is_such);

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        json_t *layers = json_object_get(packer->config, keys[i]), *layer;
        const char *name;
        json_object_foreach(layers, name, layer)
            has_one |= has_step(layer, is_such);
    }
    return has_one;
}

/* Absent, or no text: "". */
const char *
lmq_packer_text(const struct lmq_packer *packer, const char *key)
{
    const char *text = json_string_value(json_object_get(packer->config, key));

    return text == NULL ? "" : text;
}

/* Under which layers are named that have other bits or groups than the rest, by
 * GPTQModel and by AutoRound. */
static const char *const own_keys[] = {"dynamic", "extra_config"};

bool
lmq_packer_has_layers(const struct lmq_packer *packer)
{
    size_t n = 0;

    for (size_t i = 0; i < sizeof(own_keys) / sizeof(own_keys[0]); i++)
        n += json_object_size(json_object_get(packer->config, own_keys[i]));
    return n > 0;
}

uint64_t
lmq_packer_own_group(const struct lmq_packer *packer, uint64_t cols,
                     uint64_t n_groups)
{
    uint64_t found = 0;

    for (size_t i = 0; i < sizeof(own_keys) / sizeof(own_keys[0]); i++) {
        json_t *layers = json_object_get(packer->config, own_keys[i]), *layer;
        const char *name;
        json_object_foreach(layers, name, layer) {
            json_int_t n =
                json_integer_value(json_object_get(layer, "group_size"));
            uint64_t group = n == -1 ? cols : n > 0 ? (uint64_t)n : 0;
            if (group == 0 || lmq_u64_ceil_div(cols, group) != n_groups)
                continue;
            group = lmq_u64_min(group, cols);
            if (found != 0 && found != group)
                return 0;
            found = group;
        }
    }
    return found;
}

/* ---- The parts of a matrix ---- */

/* The part of the same matrix with another ending; NULL if there is none.
 * Found by halves in a sorted list, since there are a few for each of
 * thousands of matrices. */
struct lmq_tensor *
lmq_packer_sibling(const struct lmq_packer *packer,
                   const struct lmq_tensor *tensor, const char *ending,
                   const char *other_ending)
{
    const char *name = tensor->stored_name;

    return lmq_name_list_find(packer->checkpoint, &packer->list, name,
                              strlen(name) - strlen(ending), other_ending);
}

/* Codes without scales are worth nothing: the file is incomplete. */
enum lmq_status
lmq_packer_need(const struct lmq_packer *packer,
                const struct lmq_tensor *tensor, const char *ending,
                const char *other_ending, struct lmq_tensor **out,
                struct lmq_error *err)
{
    const char *name = tensor->stored_name;

    *out = lmq_packer_sibling(packer, tensor, ending, other_ending);
    if (*out != NULL)
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "tensor '%s' is there, but '%.*s%s' is missing", name,
             (int)(strlen(name) - strlen(ending)), name, other_ending);
    lmq_hint(err, "the download may be incomplete");
    return LMQ_ERR_FORMAT;
}

/* rows == 0 stands for a vector. */
enum lmq_status
lmq_packer_check_shape(const struct lmq_tensor *part, uint64_t rows,
                       uint64_t cols, struct lmq_error *err)
{
    bool is_vector = rows == 0;

    if (is_vector ? part->n_dims == 1 && part->dims[0] == cols
                  : part->n_dims == 2 && part->dims[0] == rows &&
                        part->dims[1] == cols)
        return LMQ_OK;
    if (is_vector)
        return lmq_fail(err, LMQ_ERR_FORMAT, part->offset,
                        "'%s' has %" PRIu64 " elements in %u dimensions, "
                        "expected %" PRIu64 " in one",
                        part->stored_name, part->n_elements, part->n_dims,
                        cols);
    return lmq_fail(err, LMQ_ERR_FORMAT, part->offset,
                    "'%s' is %" PRIu64 " x %" PRIu64 " in %u dimensions, "
                    "expected %" PRIu64 " x %" PRIu64,
                    part->stored_name, part->n_rows, part->n_cols,
                    part->n_dims, rows, cols);
}

static enum lmq_status
fail_type(const struct lmq_tensor *part, const char *wanted,
          struct lmq_error *err)
{
    return lmq_fail(err, LMQ_ERR_UNSUPPORTED, part->offset,
                    "'%s' is of type %s, expected %s", part->stored_name,
                    lmq_dtype_name(part->dtype), wanted);
}

/* Either sign: only the bits are looked at. */
enum lmq_status
lmq_packer_check_words(const struct lmq_tensor *part, struct lmq_error *err)
{
    return part->dtype == LMQ_DTYPE_I32 || part->dtype == LMQ_DTYPE_U32
               ? LMQ_OK
               : fail_type(part, "i32", err);
}

/* More than a byte: FP8 needs a scale of its own. */
enum lmq_status
lmq_packer_check_floats(const struct lmq_tensor *part, struct lmq_error *err)
{
    return lmq_dtype_is_float(part->dtype) && lmq_dtype_size(part->dtype) > 1
               ? LMQ_OK
               : fail_type(part, "floats of 16 bits or more", err);
}

enum lmq_status
lmq_packer_check_type(const struct lmq_tensor *part, enum lmq_dtype type,
                      struct lmq_error *err)
{
    return part->dtype == type ? LMQ_OK
                               : fail_type(part, lmq_dtype_name(type), err);
}

/* ---- Their contents ---- */

/* The part as it stands in its file; who knows the packing adds how numbers
 * lie in words. */
struct lmq_grid
lmq_packer_grid(const struct lmq_tensor *part)
{
    return (struct lmq_grid){
        .file = part->file,
        .offset = part->offset,
        .n_words = part->n_cols,
        .dtype = part->dtype,
    };
}

enum lmq_status
lmq_packer_read(const struct lmq_packer *packer, const struct lmq_tensor *part,
                float *values, size_t n, struct lmq_error *err)
{
    /* For shapes and single scales, a few numbers each. */
    unsigned char bytes[64];
    size_t size = n * lmq_dtype_size(part->dtype);

    if (part->n_elements != n || size > sizeof(bytes))
        return lmq_fail(err, LMQ_ERR_FORMAT, part->offset,
                        "'%s' has %" PRIu64 " elements, expected %zu",
                        part->stored_name, part->n_elements, n);
    enum lmq_status status =
        lmq_input_read(packer->checkpoint->files[part->file], part->offset,
                       bytes, size, err);
    if (status == LMQ_OK)
        lmq_dtype_to_f32(part->dtype, bytes, values, n);
    return status;
}

/* All of them, before one is used as an index. */
enum lmq_status
lmq_packer_check_members(const struct lmq_packer *packer,
                         const struct lmq_tensor *part, uint64_t n_groups,
                         uint64_t group, bool may_be_unset, bool *is_sorted,
                         struct lmq_error *err)
{
    const struct lmq_grid grid = lmq_packer_grid(part);
    enum { STEP = 1024 };
    unsigned char raw[STEP * 4];
    float members[STEP];

    /* Sorted: column i is of group i / group, as if nobody had said it. */
    *is_sorted = group != 0;
    for (uint64_t at = 0; at < part->n_elements; at += STEP) {
        const struct lmq_area area = {
            0, at, 1, (size_t)lmq_u64_min(STEP, part->n_elements - at)};
        enum lmq_status status = lmq_grid_read(packer->checkpoint, &grid,
                                               &area, raw, members, err);
        if (status != LMQ_OK)
            return status;
        for (size_t i = 0; i < area.n_cols; i++) {
            if (may_be_unset && (int64_t)members[i] == -1) {
                *is_sorted = true;
                return LMQ_OK;
            }
            /* They become indices of scales. A NaN is caught by the "!". */
            if (!(members[i] >= 0 && members[i] < (float)n_groups))
                return lmq_fail(err, LMQ_ERR_FORMAT, part->offset,
                                "'%s': column %" PRIu64 " belongs to group "
                                "%.0f, but there are %" PRIu64,
                                part->stored_name, at + i,
                                (double)members[i], n_groups);
            *is_sorted =
                *is_sorted && (uint64_t)members[i] == (at + i) / group;
        }
    }
    return LMQ_OK;
}

/* ---- What comes of it ---- */

static struct lmq_packer_fate *
fate_of(const struct lmq_packer *packer, const struct lmq_tensor *tensor)
{
    return &packer->fates[tensor - packer->checkpoint->tensors];
}

/* Grids know only where rows begin, and each part has one whole. */
static enum lmq_status
take_part(struct lmq_packer *packer, const struct lmq_tensor *part,
          uint64_t *n_bytes, struct lmq_error *err)
{
    struct lmq_packer_fate *fate = fate_of(packer, part);

    if (fate->is_part || fate->is_joined)
        return lmq_fail(err, LMQ_ERR_FORMAT, part->offset,
                        "'%s' would be a part of two matrices",
                        part->stored_name);
    if (part->view.pitch != 0) {
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, part->offset,
                 "'%s' is stored transposed", part->stored_name);
        lmq_hint(err, "save it again with .contiguous()");
        return LMQ_ERR_UNSUPPORTED;
    }
    if (part->encoding != NULL)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, part->offset,
                        "'%s' is divided among several files",
                        part->stored_name);
    fate->is_part = true;
    *n_bytes += part->size_bytes;
    return LMQ_OK;
}

/* The matrix gets the name that it would have unpacked ("weight"), which
 * names.c knows. Both at once would be two matrices of one name. */
static enum lmq_status
rename_joined(struct lmq_packer *packer, const struct lmq_tensor *tensor,
              const char *ending, const char *new_ending,
              struct lmq_error *err)
{
    struct lmq_packer_fate *fate = fate_of(packer, tensor);
    size_t stem = strlen(tensor->stored_name) - strlen(ending);
    size_t size = stem + strlen(new_ending) + 1;

    if (strcmp(ending, new_ending) == 0)
        return LMQ_OK;
    if (lmq_packer_sibling(packer, tensor, ending, new_ending) != NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, tensor->offset,
                        "there is '%s', and '%.*s%s' too",
                        tensor->stored_name, (int)stem, tensor->stored_name,
                        new_ending);
    fate->name = malloc(size);
    if (fate->name == NULL)
        return lmq_fail_nomem(err);
    snprintf(fate->name, size, "%.*s%s", (int)stem, tensor->stored_name,
             new_ending);
    return LMQ_OK;
}

/* Takes it over, also if this fails. */
static enum lmq_status
keep_packing(struct lmq_checkpoint *checkpoint, struct lmq_packing *packing,
             struct lmq_error *err)
{
    if (lmq_mem_grow(&checkpoint->packings, &checkpoint->packings_capacity,
                     checkpoint->n_packings + 1,
                     sizeof(struct lmq_packing *)) != 0) {
        free(packing);
        return lmq_fail_nomem(err);
    }
    checkpoint->packings[checkpoint->n_packings++] = packing;
    return LMQ_OK;
}

/* The tensor of codes becomes the matrix: float32 to whoever reads it, with
 * the shape that was packed. Its parts are marked, and leave the list when all
 * is joined. */
enum lmq_status
lmq_packer_join(struct lmq_packer *packer, struct lmq_tensor *tensor,
                const char *ending, const char *new_ending,
                struct lmq_packing *packing, const uint64_t *dims,
                size_t n_dims, struct lmq_tensor *const *parts,
                size_t n_parts, struct lmq_error *err)
{
    struct lmq_tensor shape = {0};
    uint64_t n_bytes = 0;
    enum lmq_status status = keep_packing(packer->checkpoint, packing, err);

    if (status == LMQ_OK)
        status = check_ignored(packer, tensor, ending, err);
    if (status == LMQ_OK)
        status = take_part(packer, tensor, &n_bytes, err);
    for (size_t i = 0; i < n_parts && status == LMQ_OK; i++)
        if (parts[i] != NULL)
            status = take_part(packer, parts[i], &n_bytes, err);
    if (status == LMQ_OK)
        status = rename_joined(packer, tensor, ending, new_ending, err);
    if (status != LMQ_OK)
        return status;
    fate_of(packer, tensor)->is_part = false;
    fate_of(packer, tensor)->is_joined = true;
    if (!lmq_tensor_set_dims(&shape, dims, n_dims) || shape.n_elements == 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, tensor->offset,
                        "tensor '%s' stands for a matrix that is empty or too "
                        "large",
                        tensor->stored_name);
    lmq_tensor_set_dims(tensor, shape.dims, n_dims);
    packing->n_cols = tensor->n_cols;
    tensor->packing = packing;
    tensor->encoding = packing->name;
    tensor->dtype = LMQ_DTYPE_F32;
    tensor->size_bytes = n_bytes;
    tensor->bits_per_element =
        8 * (double)n_bytes / (double)tensor->n_elements;
    return LMQ_OK;
}

/* The first reason stays. A model in which one matrix cannot be read cannot
 * run; its other tensors still can be looked at. */
void
lmq_packer_refuse(struct lmq_packer *packer, const char *format, ...)
{
    va_list args;

    if (packer->refused[0] != '\0')
        return;
    va_start(args, format);
    lmq_c_vsnprintf(packer->refused, sizeof(packer->refused), format, args);
    va_end(args);
}

/* For the report: each kind once, with how many there are of it. */
void
lmq_packer_found(struct lmq_packer *packer, const char *format, ...)
{
    const size_t most =
        sizeof(packer->findings) / sizeof(packer->findings[0]) - 1;
    char text[sizeof(packer->findings[0].text)];
    size_t i = 0;
    va_list args;

    va_start(args, format);
    lmq_c_vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    while (i < packer->n_findings &&
           strcmp(packer->findings[i].text, text) != 0)
        i++;
    if (i > most)
        i = most;
    if (i == packer->n_findings) {
        packer->n_findings++;
        snprintf(packer->findings[i].text, sizeof(text), "%s",
                 i < most ? text : "packed tensors of other kinds");
    }
    packer->findings[i].n++;
}
