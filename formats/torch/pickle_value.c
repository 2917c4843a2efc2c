/*
 * pickle_value.c - the globals that pickles may refer to, and looking at what
 * they describe.
 */
#include "config.h"

#include "formats/torch/pickle_value.h"

#include <string.h>

/* ---- Globals ---- */

#define STORAGE(name, type) {"torch", name, LMQ_PICKLE_IS_STORAGE, type}
#define DTYPE(name, type) {"torch", name, LMQ_PICKLE_IS_DTYPE, type}
#define OTHER(module, name) {module, name, LMQ_PICKLE_IS_OTHER, 0}

/* What state dicts and training checkpoints refer to. Names of types that
 * cannot be read are missing on purpose: so errors name them. */
static const struct lmq_pickle_global globals[] = {
    {"collections", "OrderedDict", LMQ_PICKLE_IS_DICT, 0},
    {"collections", "defaultdict", LMQ_PICKLE_IS_DICT, 0},
    {"collections", "Counter", LMQ_PICKLE_IS_DICT, 0},
    {"torch", "Size", LMQ_PICKLE_IS_SIZE, 0},
    {"torch._utils", "_rebuild_tensor", LMQ_PICKLE_IS_TENSOR, 0},
    {"torch._utils", "_rebuild_tensor_v2", LMQ_PICKLE_IS_TENSOR, 0},
    {"torch._utils", "_rebuild_tensor_v3", LMQ_PICKLE_IS_TENSOR_V3, 0},
    {"torch._utils", "_rebuild_parameter", LMQ_PICKLE_IS_PARAMETER, 0},
    {"torch._utils", "_rebuild_parameter_with_state", LMQ_PICKLE_IS_PARAMETER,
     0},
    {"torch._tensor", "_rebuild_from_type_v2", LMQ_PICKLE_IS_FROM_TYPE, 0},
    {"torch.storage", "UntypedStorage", LMQ_PICKLE_IS_BYTE_STORAGE, 0},
    {"torch", "UntypedStorage", LMQ_PICKLE_IS_BYTE_STORAGE, 0},
    STORAGE("FloatStorage", LMQ_DTYPE_F32),
    STORAGE("HalfStorage", LMQ_DTYPE_F16),
    STORAGE("BFloat16Storage", LMQ_DTYPE_BF16),
    STORAGE("DoubleStorage", LMQ_DTYPE_F64),
    STORAGE("ByteStorage", LMQ_DTYPE_U8),
    STORAGE("CharStorage", LMQ_DTYPE_I8),
    STORAGE("ShortStorage", LMQ_DTYPE_I16),
    STORAGE("IntStorage", LMQ_DTYPE_I32),
    STORAGE("LongStorage", LMQ_DTYPE_I64),
    STORAGE("BoolStorage", LMQ_DTYPE_BOOL),
    DTYPE("float32", LMQ_DTYPE_F32),
    DTYPE("float16", LMQ_DTYPE_F16),
    DTYPE("bfloat16", LMQ_DTYPE_BF16),
    DTYPE("float64", LMQ_DTYPE_F64),
    DTYPE("float8_e4m3fn", LMQ_DTYPE_F8_E4M3),
    DTYPE("float8_e5m2", LMQ_DTYPE_F8_E5M2),
    DTYPE("uint8", LMQ_DTYPE_U8),
    DTYPE("int8", LMQ_DTYPE_I8),
    DTYPE("uint16", LMQ_DTYPE_U16),
    DTYPE("int16", LMQ_DTYPE_I16),
    DTYPE("uint32", LMQ_DTYPE_U32),
    DTYPE("int32", LMQ_DTYPE_I32),
    DTYPE("uint64", LMQ_DTYPE_U64),
    DTYPE("int64", LMQ_DTYPE_I64),
    DTYPE("bool", LMQ_DTYPE_BOOL),
    OTHER("torch", "Tensor"),
    OTHER("torch", "device"),
    OTHER("torch.nn.parameter", "Parameter"),
    OTHER("argparse", "Namespace"),
    OTHER("pathlib", "PosixPath"),
    OTHER("__builtin__", "set"),
    OTHER("__builtin__", "dict"),
    OTHER("__builtin__", "list"),
    OTHER("__builtin__", "int"),
    OTHER("__builtin__", "float"),
    OTHER("builtins", "set"),
    OTHER("builtins", "dict"),
    OTHER("builtins", "list"),
    OTHER("builtins", "int"),
    OTHER("builtins", "float"),
    OTHER("_codecs", "encode"),
    OTHER("numpy", "dtype"),
    OTHER("numpy", "ndarray"),
    OTHER("numpy.core.multiarray", "scalar"),
    OTHER("numpy.core.multiarray", "_reconstruct"),
    OTHER("numpy._core.multiarray", "scalar"),
    OTHER("numpy._core.multiarray", "_reconstruct"),
};

static bool
is_text(const char *wanted, const unsigned char *text, size_t n)
{
    return strlen(wanted) == n && memcmp(wanted, text, n) == 0;
}

int
lmq_pickle_find_global(const unsigned char *module, size_t n_module,
                       const unsigned char *name, size_t n_name)
{
    for (size_t i = 0; i < sizeof(globals) / sizeof(globals[0]); i++)
        if (is_text(globals[i].module, module, n_module) &&
            is_text(globals[i].name, name, n_name))
            return (int)i;
    return -1;
}

/* ---- Looking at values ---- */

const struct lmq_pickle_value *
lmq_pickle_root(const struct lmq_pickle *pickle)
{
    return &pickle->values[pickle->root];
}

const struct lmq_pickle_global *
lmq_pickle_global(const struct lmq_pickle_value *value)
{
    return lmq_pickle_is(value, LMQ_PICKLE_GLOBAL) ||
                   lmq_pickle_is(value, LMQ_PICKLE_OBJECT)
               ? &globals[value->global]
               : NULL;
}

const struct lmq_pickle_value *
lmq_pickle_arguments(const struct lmq_pickle *pickle,
                     const struct lmq_pickle_value *value)
{
    return lmq_pickle_is(value, LMQ_PICKLE_OBJECT) ||
                   lmq_pickle_is(value, LMQ_PICKLE_PERSISTENT)
               ? &pickle->values[value->is.parts.arguments]
               : NULL;
}

uint32_t
lmq_pickle_first(const struct lmq_pickle_value *value)
{
    return lmq_pickle_is(value, LMQ_PICKLE_TUPLE) ||
                   lmq_pickle_is(value, LMQ_PICKLE_LIST) ||
                   lmq_pickle_is(value, LMQ_PICKLE_DICT)
               ? value->is.parts.first
               : LMQ_PICKLE_NOTHING;
}

const struct lmq_pickle_value *
lmq_pickle_next(const struct lmq_pickle *pickle, uint32_t *cell)
{
    if (*cell == LMQ_PICKLE_NOTHING)
        return NULL;
    const struct lmq_pickle_cell *found = &pickle->cells[*cell];
    *cell = found->next;
    return &pickle->values[found->value];
}

const struct lmq_pickle_value *
lmq_pickle_item(const struct lmq_pickle *pickle,
                const struct lmq_pickle_value *value, size_t index)
{
    uint32_t cell = lmq_pickle_first(value);

    while (index-- > 0)
        if (lmq_pickle_next(pickle, &cell) == NULL)
            return NULL;
    return lmq_pickle_next(pickle, &cell);
}

bool
lmq_pickle_says(const struct lmq_pickle_value *value, const char *text)
{
    return lmq_pickle_is(value, LMQ_PICKLE_TEXT) &&
           is_text(text, value->is.text.at, value->is.text.n);
}

const struct lmq_pickle_value *
lmq_pickle_get(const struct lmq_pickle *pickle,
               const struct lmq_pickle_value *dict, const char *key)
{
    const struct lmq_pickle_value *found = NULL;

    if (!lmq_pickle_is(dict, LMQ_PICKLE_DICT))
        return NULL;
    for (uint32_t cell = lmq_pickle_first(dict);
         cell != LMQ_PICKLE_NOTHING;) {
        bool is_it = lmq_pickle_says(lmq_pickle_next(pickle, &cell), key);
        const struct lmq_pickle_value *value =
            lmq_pickle_next(pickle, &cell);
        if (is_it)
            found = value;
    }
    return found;
}
