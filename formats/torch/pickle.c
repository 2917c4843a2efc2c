/*
 * pickle.c - parses pickles of the protocols 2 to 5.
 *
 * Every opcode makes at most a few values of fixed size, so that time and
 * memory are bounded by the pickle's size, and nothing here is recursive.
 *
 * A pickle is a program for a machine with a stack. Its opcodes push values,
 * mark places on the stack, gather what lies above a mark into a list or a
 * dictionary, and keep values under numbers (the memo) to be pushed again. Two
 * of them call functions of Python by name: GLOBAL pushes one, REDUCE calls it
 * with a tuple. Here nothing is called. A call becomes a value that says which
 * function was to be called with what; whoever reads it knows the few that
 * make tensors, and refuses the rest by name.
 */
#include "config.h"

#include "formats/torch/pickle.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/utf8.h"

/* Room for the tensors of any model, and at most some 200 MB. */
#define VALUES_MAX ((size_t)1 << 22)
#define MARKS_MAX 256
#define PROTOCOL_MIN 2
#define PROTOCOL_MAX 5

/* ---- The machine ---- */

struct parser {
    const unsigned char *bytes;
    size_t n, at;
    struct lmq_pickle *pickle;
    uint32_t *stack;
    size_t n_stack, stack_capacity;
    uint32_t *memo;
    size_t n_memo, memo_capacity;
    size_t marks[MARKS_MAX]; /* how high the stack was */
    size_t n_marks;
    bool is_stopped;
    /* The opcode that is run */
    size_t op_at;
    const char *op;
    int what;                  /* the opcode's own, from the table */
    uint64_t number;           /* its argument */
    const unsigned char *text; /* `number` bytes, if it is counted */
    struct lmq_error *err;
};

/* The opcode by its name in Python's pickletools, so that `python -m
 * pickletools` shows the place. */
static enum lmq_status
fail_op(struct parser *p, const char *what)
{
    return lmq_fail(p->err, LMQ_ERR_FORMAT, p->op_at,
                    "the pickle is damaged at its byte %zu: %s %s", p->op_at,
                    p->op, what);
}

/* Values are known by numbers: their array moves while it grows. */
static struct lmq_pickle_value *
value_at(struct parser *p, uint32_t index)
{
    return &p->pickle->values[index];
}

static enum lmq_status
push(struct parser *p, uint32_t index)
{
    if (lmq_mem_grow(&p->stack, &p->stack_capacity, p->n_stack + 1,
                     sizeof(*p->stack)) != 0)
        return lmq_fail_nomem(p->err);
    p->stack[p->n_stack++] = index;
    return LMQ_OK;
}

/* A new value on the stack. It moves when another one is made. */
static enum lmq_status
push_new(struct parser *p, enum lmq_pickle_kind kind,
         struct lmq_pickle_value **value)
{
    struct lmq_pickle *pickle = p->pickle;

    if (pickle->n_values >= VALUES_MAX)
        return lmq_fail(p->err, LMQ_ERR_UNSUPPORTED, p->op_at,
                        "the pickle has more than %zu values", VALUES_MAX);
    if (lmq_mem_grow(&pickle->values, &pickle->values_capacity,
                     pickle->n_values + 1, sizeof(*pickle->values)) != 0)
        return lmq_fail_nomem(p->err);
    uint32_t index = (uint32_t)pickle->n_values++;
    *value = &pickle->values[index];
    memset(*value, 0, sizeof(**value));
    (*value)->kind = (unsigned char)kind;
    if (kind >= LMQ_PICKLE_TUPLE) {
        (*value)->is.parts.first = (*value)->is.parts.last =
            (*value)->is.parts.arguments = LMQ_PICKLE_NOTHING;
    }
    return push(p, index);
}

/* What was pushed since the last mark. */
static size_t
on_stack(const struct parser *p)
{
    return p->n_stack - (p->n_marks == 0 ? 0 : p->marks[p->n_marks - 1]);
}

/* Takes one off, if there is one of that kind. */
static bool
pop_kind(struct parser *p, enum lmq_pickle_kind kind, uint32_t *index)
{
    if (on_stack(p) == 0)
        return false;
    *index = p->stack[--p->n_stack];
    return value_at(p, *index)->kind == kind;
}

/* Items are cells in one array, chained: a list of unknown length needs no
 * array of its own, and appending costs the same for any length. */
static enum lmq_status
add_item(struct parser *p, uint32_t container, uint32_t item)
{
    struct lmq_pickle *pickle = p->pickle;
    uint32_t cell = (uint32_t)pickle->n_cells;

    if (pickle->n_cells >= 2 * VALUES_MAX)
        return lmq_fail(p->err, LMQ_ERR_UNSUPPORTED, p->op_at,
                        "the pickle has more than %zu items", 2 * VALUES_MAX);
    if (lmq_mem_grow(&pickle->cells, &pickle->cells_capacity,
                     pickle->n_cells + 1, sizeof(*pickle->cells)) != 0)
        return lmq_fail_nomem(p->err);
    pickle->cells[pickle->n_cells++] =
        (struct lmq_pickle_cell){item, LMQ_PICKLE_NOTHING};
    struct lmq_pickle_value *value = value_at(p, container);
    if (value->is.parts.first == LMQ_PICKLE_NOTHING)
        value->is.parts.first = cell;
    else
        pickle->cells[value->is.parts.last].next = cell;
    value->is.parts.last = cell;
    value->n_items++;
    return LMQ_OK;
}

/* The top n of the stack become items of a value that is not among them. */
static enum lmq_status
move_items(struct parser *p, size_t n, uint32_t container)
{
    enum lmq_status status = LMQ_OK;
    size_t first = p->n_stack - n;

    for (size_t i = 0; i < n && status == LMQ_OK; i++)
        status = add_item(p, container, p->stack[first + i]);
    p->n_stack = first;
    return status;
}

/* ---- Opcodes: numbers and text ---- */

static enum lmq_status
run_protocol(struct parser *p)
{
    if (p->number < PROTOCOL_MIN || p->number > PROTOCOL_MAX)
        return lmq_fail(p->err, LMQ_ERR_UNSUPPORTED, p->op_at,
                        "is a pickle of protocol %" PRIu64 ", expected %d to "
                        "%d",
                        p->number, PROTOCOL_MIN, PROTOCOL_MAX);
    return LMQ_OK;
}

/* From protocol 4 on: how many bytes belong together, for readers of streams.
 * All bytes are here; only a frame that says too much tells of a truncated
 * file. */
static enum lmq_status
run_frame(struct parser *p)
{
    return p->number > p->n - p->at ? fail_op(p, "goes beyond the end")
                                    : LMQ_OK;
}

/* None, or an empty container. */
static enum lmq_status
run_simple(struct parser *p)
{
    struct lmq_pickle_value *value = NULL;

    return push_new(p, (enum lmq_pickle_kind)p->what, &value);
}

static enum lmq_status
run_bool(struct parser *p)
{
    struct lmq_pickle_value *value = NULL;
    enum lmq_status status = push_new(p, LMQ_PICKLE_BOOL, &value);

    if (status == LMQ_OK)
        value->is.integer = p->what;
    return status;
}

static enum lmq_status
run_int(struct parser *p)
{
    struct lmq_pickle_value *value = NULL;
    enum lmq_status status = push_new(p, LMQ_PICKLE_INT, &value);

    if (status == LMQ_OK) /* only the one of four bytes has a sign */
        value->is.integer = p->what == 4 ? (int64_t)(int32_t)p->number
                                         : (int64_t)p->number;
    return status;
}

/* Little-endian, in two's complement. */
static enum lmq_status
run_long(struct parser *p)
{
    struct lmq_pickle_value *value = NULL;
    bool is_big = p->number > 8;
    enum lmq_status status =
        push_new(p, is_big ? LMQ_PICKLE_BIG : LMQ_PICKLE_INT, &value);

    if (status != LMQ_OK || is_big || p->number == 0)
        return status;
    bool is_negative = (p->text[p->number - 1] & 0x80) != 0;
    uint64_t bits = is_negative ? UINT64_MAX : 0;
    for (uint64_t i = p->number; i-- > 0;)
        bits = bits << 8 | p->text[i];
    value->is.integer = (int64_t)bits;
    return LMQ_OK;
}

/* IEEE 754, double. */
static enum lmq_status
run_real(struct parser *p)
{
    struct lmq_pickle_value *value = NULL;
    enum lmq_status status = push_new(p, LMQ_PICKLE_REAL, &value);
    uint64_t bits = __builtin_bswap64(p->number); /* the only big-endian one */

    if (status == LMQ_OK)
        memcpy(&value->is.real, &bits, sizeof(value->is.real));
    return status;
}

/* Texts stay where they are in the pickle's bytes; who keeps one copies it. */
static enum lmq_status
run_text(struct parser *p)
{
    struct lmq_pickle_value *value = NULL;

    if (p->what == LMQ_PICKLE_TEXT && !lmq_is_utf8(p->text, (size_t)p->number))
        return fail_op(p, "is no UTF-8");
    enum lmq_status status =
        push_new(p, (enum lmq_pickle_kind)p->what, &value);
    if (status == LMQ_OK) {
        value->is.text.at = p->text;
        value->is.text.n = (size_t)p->number;
    }
    return status;
}

/* ---- Opcodes: containers ---- */

/* Each nesting of a container that is being built takes one. */
static enum lmq_status
run_mark(struct parser *p)
{
    if (p->n_marks == MARKS_MAX)
        return lmq_fail(p->err, LMQ_ERR_UNSUPPORTED, p->op_at,
                        "the pickle is nested deeper than %d", MARKS_MAX);
    p->marks[p->n_marks++] = p->n_stack;
    return LMQ_OK;
}

/* The values above the mark, which is taken away. */
static bool
pop_mark(struct parser *p, size_t *n)
{
    if (p->n_marks == 0)
        return false;
    *n = on_stack(p);
    p->n_marks--;
    return true;
}

/* `what` values, or those above the mark. */
static enum lmq_status
run_tuple(struct parser *p)
{
    struct lmq_pickle_value *value = NULL;
    size_t n = (size_t)p->what;

    if (p->what < 0 && !pop_mark(p, &n))
        return fail_op(p, "has no mark");
    if (on_stack(p) < n)
        return fail_op(p, "has too few values");
    enum lmq_status status = push_new(p, LMQ_PICKLE_TUPLE, &value);
    if (status != LMQ_OK)
        return status;
    uint32_t tuple = p->stack[--p->n_stack];
    status = move_items(p, n, tuple);
    return status == LMQ_OK ? push(p, tuple) : status;
}

/* Items of the list or dictionary that stands below them. */
static enum lmq_status
add_to(struct parser *p, enum lmq_pickle_kind kind, size_t n)
{
    if (on_stack(p) < n + 1)
        return fail_op(p, "has too few values");
    uint32_t container = p->stack[p->n_stack - n - 1];
    if (value_at(p, container)->kind != kind)
        return fail_op(p, kind == LMQ_PICKLE_LIST ? "has no list"
                                                  : "has no dictionary");
    if (kind == LMQ_PICKLE_DICT && n % 2 != 0)
        return fail_op(p, "has a key without a value");
    return move_items(p, n, container);
}

static enum lmq_status
run_add_one(struct parser *p)
{
    enum lmq_pickle_kind kind = (enum lmq_pickle_kind)p->what;

    return add_to(p, kind, kind == LMQ_PICKLE_DICT ? 2 : 1);
}

static enum lmq_status
run_add_many(struct parser *p)
{
    size_t n;

    if (!pop_mark(p, &n))
        return fail_op(p, "has no mark");
    return add_to(p, (enum lmq_pickle_kind)p->what, n);
}

/* ---- Opcodes: memory ---- */

/* Memo numbers are small and dense in what torch.save writes; one beyond the
 * length of the pickle could only serve to make us allocate. */
static enum lmq_status
run_put(struct parser *p)
{
    size_t index = p->what < 0 ? p->n_memo : (size_t)p->number;

    if (on_stack(p) == 0)
        return fail_op(p, "has no value");
    if (index >= p->n) /* a pickle of n bytes cannot need so many */
        return fail_op(p, "uses too large a number");
    if (lmq_mem_grow(&p->memo, &p->memo_capacity, index + 1,
                     sizeof(*p->memo)) != 0)
        return lmq_fail_nomem(p->err);
    while (p->n_memo <= index)
        p->memo[p->n_memo++] = LMQ_PICKLE_NOTHING;
    p->memo[index] = p->stack[p->n_stack - 1];
    return LMQ_OK;
}

static enum lmq_status
run_get(struct parser *p)
{
    if (p->number >= p->n_memo ||
        p->memo[p->number] == LMQ_PICKLE_NOTHING)
        return fail_op(p, "asks for what was never put");
    return push(p, p->memo[p->number]);
}

/* ---- Opcodes: globals, calls, objects ---- */

/* What to do about something that is not understood. */
static const char *
find_advice(const unsigned char *name, size_t n)
{
    static const char *const quantized[] = {"_rebuild_wrapper_subclass",
                                            "_rebuild_qtensor"};

    for (size_t i = 0; i < sizeof(quantized) / sizeof(quantized[0]); i++)
        if (n == strlen(quantized[i]) && memcmp(name, quantized[i], n) == 0)
            return "its tensors are quantized, perhaps by torchao: dequantize "
                   "them, or convert the original float checkpoint";
    return "save only the tensors: torch.save(model.state_dict(), ...), or as "
           "safetensors";
}

/* The only place where a name of Python's could become something that runs: it
 * becomes a number in our own table, or the file is refused by that name. */
static enum lmq_status
push_global(struct parser *p, const unsigned char *module, size_t n_module,
            const unsigned char *name, size_t n_name)
{
    struct lmq_pickle_value *value = NULL;
    int number = lmq_pickle_find_global(module, n_module, name, n_name);

    if (number < 0) {
        lmq_fail(p->err, LMQ_ERR_UNSUPPORTED, p->op_at,
                 "the pickle asks for '%.*s.%.*s', which is not among what is "
                 "understood",
                 (int)(n_module > 100 ? 100 : n_module), (const char *)module,
                 (int)(n_name > 100 ? 100 : n_name), (const char *)name);
        lmq_hint(p->err, "%s", find_advice(name, n_name));
        return LMQ_ERR_UNSUPPORTED;
    }
    enum lmq_status status = push_new(p, LMQ_PICKLE_GLOBAL, &value);
    if (status == LMQ_OK)
        value->global = (unsigned char)number;
    return status;
}

/* Two lines follow: module and name. */
static enum lmq_status
run_global(struct parser *p)
{
    const unsigned char *lines[2];
    size_t n[2];

    for (int i = 0; i < 2; i++) {
        lines[i] = p->bytes + p->at;
        const unsigned char *end = memchr(lines[i], '\n', p->n - p->at);
        if (end == NULL)
            return fail_op(p, "goes beyond the end");
        n[i] = (size_t)(end - lines[i]);
        p->at += n[i] + 1;
    }
    return push_global(p, lines[0], n[0], lines[1], n[1]);
}

/* Protocol 4: module and name were pushed as texts. */
static enum lmq_status
run_stack_global(struct parser *p)
{
    uint32_t module, name;

    if (!pop_kind(p, LMQ_PICKLE_TEXT, &name) ||
        !pop_kind(p, LMQ_PICKLE_TEXT, &module))
        return fail_op(p, "has no two texts");
    const struct lmq_pickle_value *m = value_at(p, module);
    const struct lmq_pickle_value *n = value_at(p, name);
    return push_global(p, m->is.text.at, m->is.text.n, n->is.text.at,
                       n->is.text.n);
}

/* What would be a call. Dictionaries of all kinds begin empty. */
static enum lmq_status
run_call(struct parser *p)
{
    uint32_t arguments, callee;
    struct lmq_pickle_value *value = NULL;

    if (!pop_kind(p, LMQ_PICKLE_TUPLE, &arguments))
        return fail_op(p, "has no arguments");
    if (!pop_kind(p, LMQ_PICKLE_GLOBAL, &callee))
        return fail_op(p, "calls what is no global");
    unsigned char number = value_at(p, callee)->global;
    bool is_dict = lmq_pickle_global(value_at(p, callee))->role ==
                   LMQ_PICKLE_IS_DICT;
    enum lmq_status status = push_new(
        p, is_dict ? LMQ_PICKLE_DICT : LMQ_PICKLE_OBJECT, &value);
    if (status == LMQ_OK) {
        value->global = number;
        value->is.parts.arguments = arguments;
    }
    return status;
}

/* Would set the state of an object: of none does it matter here. */
static enum lmq_status
run_build(struct parser *p)
{
    if (on_stack(p) < 2)
        return fail_op(p, "has too few values");
    p->n_stack--;
    const struct lmq_pickle_value *value =
        value_at(p, p->stack[p->n_stack - 1]);
    if (value->kind != LMQ_PICKLE_OBJECT && value->kind != LMQ_PICKLE_DICT)
        return fail_op(p, "has no object");
    return LMQ_OK;
}

/* A storage that stands outside of the pickle: a tuple that names its type and
 * its member of the archive. */
static enum lmq_status
run_persistent(struct parser *p)
{
    uint32_t arguments;
    struct lmq_pickle_value *value = NULL;

    if (!pop_kind(p, LMQ_PICKLE_TUPLE, &arguments))
        return fail_op(p, "has no tuple");
    enum lmq_status status = push_new(p, LMQ_PICKLE_PERSISTENT, &value);
    if (status == LMQ_OK)
        value->is.parts.arguments = arguments;
    return status;
}

/* One value is left, and nothing follows: bytes behind the end would be a
 * second pickle that other readers might read. */
static enum lmq_status
run_stop(struct parser *p)
{
    if (p->n_stack != 1 || p->n_marks != 0)
        return fail_op(p, "leaves values behind");
    if (p->at != p->n)
        return fail_op(p, "is not the end");
    p->pickle->root = p->stack[0];
    p->is_stopped = true;
    return LMQ_OK;
}

/* ---- The table of opcodes ---- */

struct opcode {
    const char *name;
    enum lmq_status (*run)(struct parser *p);
    int width;       /* bytes of the number that follows */
    bool is_counted; /* the number counts bytes that follow it */
    int what;
};

/* Names as in Python's pickletools. */
static const struct opcode opcodes[256] = {
    [0x80] = {"PROTO", run_protocol, 1, false, 0},
    [0x95] = {"FRAME", run_frame, 8, false, 0},
    ['.'] = {"STOP", run_stop, 0, false, 0},
    ['N'] = {"NONE", run_simple, 0, false, LMQ_PICKLE_NONE},
    [0x88] = {"NEWTRUE", run_bool, 0, false, 1},
    [0x89] = {"NEWFALSE", run_bool, 0, false, 0},
    ['K'] = {"BININT1", run_int, 1, false, 1},
    ['M'] = {"BININT2", run_int, 2, false, 2},
    ['J'] = {"BININT", run_int, 4, false, 4},
    [0x8a] = {"LONG1", run_long, 1, true, 0},
    [0x8b] = {"LONG4", run_long, 4, true, 0},
    ['G'] = {"BINFLOAT", run_real, 8, false, 0},
    [0x8c] = {"SHORT_BINUNICODE", run_text, 1, true, LMQ_PICKLE_TEXT},
    ['X'] = {"BINUNICODE", run_text, 4, true, LMQ_PICKLE_TEXT},
    [0x8d] = {"BINUNICODE8", run_text, 8, true, LMQ_PICKLE_TEXT},
    ['C'] = {"SHORT_BINBYTES", run_text, 1, true, LMQ_PICKLE_BYTES},
    ['B'] = {"BINBYTES", run_text, 4, true, LMQ_PICKLE_BYTES},
    [0x8e] = {"BINBYTES8", run_text, 8, true, LMQ_PICKLE_BYTES},
    ['('] = {"MARK", run_mark, 0, false, 0},
    [')'] = {"EMPTY_TUPLE", run_tuple, 0, false, 0},
    [0x85] = {"TUPLE1", run_tuple, 0, false, 1},
    [0x86] = {"TUPLE2", run_tuple, 0, false, 2},
    [0x87] = {"TUPLE3", run_tuple, 0, false, 3},
    ['t'] = {"TUPLE", run_tuple, 0, false, -1},
    [0x91] = {"FROZENSET", run_tuple, 0, false, -1},
    [']'] = {"EMPTY_LIST", run_simple, 0, false, LMQ_PICKLE_LIST},
    ['a'] = {"APPEND", run_add_one, 0, false, LMQ_PICKLE_LIST},
    ['e'] = {"APPENDS", run_add_many, 0, false, LMQ_PICKLE_LIST},
    [0x8f] = {"EMPTY_SET", run_simple, 0, false, LMQ_PICKLE_LIST},
    [0x90] = {"ADDITEMS", run_add_many, 0, false, LMQ_PICKLE_LIST},
    ['}'] = {"EMPTY_DICT", run_simple, 0, false, LMQ_PICKLE_DICT},
    ['s'] = {"SETITEM", run_add_one, 0, false, LMQ_PICKLE_DICT},
    ['u'] = {"SETITEMS", run_add_many, 0, false, LMQ_PICKLE_DICT},
    ['q'] = {"BINPUT", run_put, 1, false, 0},
    ['r'] = {"LONG_BINPUT", run_put, 4, false, 0},
    [0x94] = {"MEMOIZE", run_put, 0, false, -1},
    ['h'] = {"BINGET", run_get, 1, false, 0},
    ['j'] = {"LONG_BINGET", run_get, 4, false, 0},
    ['c'] = {"GLOBAL", run_global, 0, false, 0},
    [0x93] = {"STACK_GLOBAL", run_stack_global, 0, false, 0},
    ['R'] = {"REDUCE", run_call, 0, false, 0},
    [0x81] = {"NEWOBJ", run_call, 0, false, 0},
    ['b'] = {"BUILD", run_build, 0, false, 0},
    ['Q'] = {"BINPERSID", run_persistent, 0, false, 0},
};

/* Reads the opcode and its argument, which the table describes, then runs it;
 * so no function of an opcode reads beyond the end by itself but GLOBAL. */
static enum lmq_status
step(struct parser *p)
{
    p->op_at = p->at;
    if (p->at == p->n)
        return lmq_fail(p->err, LMQ_ERR_FORMAT, p->at,
                        "the pickle ends without STOP");
    unsigned char byte = p->bytes[p->at++];
    const struct opcode *op = &opcodes[byte];
    if (op->name == NULL) {
        lmq_fail(p->err, LMQ_ERR_UNSUPPORTED, p->op_at,
                 "the pickle has the opcode 0x%02x at its byte %zu, which is "
                 "not among those that torch.save writes",
                 byte, p->op_at);
        lmq_hint(p->err, "save the model with a current torch.save, or as "
                         "safetensors");
        return LMQ_ERR_UNSUPPORTED;
    }
    p->op = op->name;
    p->what = op->what;
    p->number = 0;
    if ((size_t)op->width > p->n - p->at)
        return fail_op(p, "goes beyond the end");
    for (int i = 0; i < op->width; i++)
        p->number |= (uint64_t)p->bytes[p->at++] << 8 * i;
    if (op->is_counted) {
        if (p->number > p->n - p->at)
            return fail_op(p, "goes beyond the end");
        p->text = p->bytes + p->at;
        p->at += (size_t)p->number;
    }
    return op->run(p);
}

enum lmq_status
lmq_pickle_parse(const unsigned char *bytes, size_t n, struct lmq_pickle **out,
                 struct lmq_error *err)
{
    struct parser p = {.bytes = bytes, .n = n, .err = err};
    enum lmq_status status = LMQ_OK;

    *out = NULL;
    if (n < 2 || opcodes[bytes[0]].run != run_protocol)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "is no pickle");
    p.pickle = calloc(1, sizeof(*p.pickle));
    if (p.pickle == NULL)
        return lmq_fail_nomem(err);
    while (status == LMQ_OK && !p.is_stopped)
        status = step(&p);
    free(p.stack);
    free(p.memo);
    if (status != LMQ_OK) {
        lmq_pickle_free(p.pickle);
        return status;
    }
    *out = p.pickle;
    return LMQ_OK;
}

void
lmq_pickle_free(struct lmq_pickle *pickle)
{
    if (pickle == NULL)
        return;
    free(pickle->values);
    free(pickle->cells);
    free(pickle);
}
