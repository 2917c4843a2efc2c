/*
 * other_kinds.c - files that are often taken for checkpoints.
 */
#include "config.h"

#include "formats/checkpoint/other_kinds.h"

#include <string.h>

#include "base/error.h"

#define PICKLE                                                                \
    "is a Python pickle (perhaps of a PyTorch before 1.6), which is not read"
#define PICKLE_HINT                                                           \
    "load it and torch.save it again with a current PyTorch, or save it as "  \
    "safetensors"

/* What they are, and what to do then. */
static const struct {
    const char *start;
    size_t n;
    const char *what;
    const char *hint;
} other_kinds[] = {
    {"version https://git-lfs", 23, "is a Git LFS pointer, not the file itself",
     "'git lfs pull' fetches the real file"},
    {"<!doctype", 9, "is a web page, not a checkpoint",
     "the download probably failed; fetch the file again"},
    {"<html", 5, "is a web page, not a checkpoint",
     "the download probably failed; fetch the file again"},
    {"GGUF", 4, "is a GGUF file that holds no tensors: a tokenizer, no model",
     ".tokenizer takes it"},
    {"\x80\x02", 2, PICKLE, PICKLE_HINT},
    {"\x80\x03", 2, PICKLE, PICKLE_HINT},
    {"\x80\x04", 2, PICKLE, PICKLE_HINT},
    {"\x80\x05", 2, PICKLE, PICKLE_HINT},
    {"\x89HDF", 4, "is an HDF5 file, which is not supported",
     "save the model as safetensors"},
    {"\x1f\x8b", 2, "is compressed with gzip", "gunzip it first"},
    {"{", 1, "is JSON, not a checkpoint",
     "name the folder that holds the model, or its weights file"},
};

/* Letters of either case: web pages differ in that. */
static bool
begins_with(const unsigned char *head, const char *start, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = head[i];
        if (c >= 'A' && c <= 'Z')
            c = (unsigned char)(c - 'A' + 'a');
        if (c != (unsigned char)start[i] && head[i] != (unsigned char)start[i])
            return false;
    }
    return true;
}

bool
lmq_fail_other_kind(const unsigned char *head, size_t n, struct lmq_error *err)
{
    for (size_t i = 0; i < sizeof(other_kinds) / sizeof(other_kinds[0]); i++)
        if (n >= other_kinds[i].n &&
            begins_with(head, other_kinds[i].start, other_kinds[i].n)) {
            lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0, "%s", other_kinds[i].what);
            lmq_hint(err, "%s", other_kinds[i].hint);
            return true;
        }
    return false;
}
