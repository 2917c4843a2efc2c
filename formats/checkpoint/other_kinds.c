/*
 * other_kinds.c - files that are often taken for checkpoints.
 */
#include "config.h"

#include "formats/checkpoint/other_kinds.h"

#include "base/error.h"

#define PICKLE                                                                \
    "is a Python pickle (perhaps of a PyTorch before 1.6), which is not read"
#define PICKLE_HINT                                                           \
    "load it and torch.save it again with a current PyTorch, or save it as "  \
    "safetensors"

/* What they are, and what to do then. */
static const struct {
    const char *start;
    const char *what;
    const char *hint;
} other_kinds[] = {
    {"version https://git-lfs", "is a Git LFS pointer, not the file itself",
     "'git lfs pull' fetches the real file"},
    {"<!doctype", "is a web page, not a checkpoint",
     "the download probably failed; fetch the file again"},
    {"<html", "is a web page, not a checkpoint",
     "the download probably failed; fetch the file again"},
    {"GGUF", "is a GGUF file under another name",
     "name it by itself, not its folder"},
    {"\x80\x02", PICKLE, PICKLE_HINT},
    {"\x80\x03", PICKLE, PICKLE_HINT},
    {"\x80\x04", PICKLE, PICKLE_HINT},
    {"\x80\x05", PICKLE, PICKLE_HINT},
    {"\x89HDF", "is an HDF5 file, which is not supported",
     "save the model as safetensors"},
    {"\x1f\x8b", "is compressed with gzip", "gunzip it first"},
    {"{", "is JSON, not a checkpoint",
     "name the folder that holds the model, or its weights file"},
};

/* Letters of either case: web pages differ in that. */
static bool
begins_with(const unsigned char *head, size_t n, const char *start)
{
    for (size_t i = 0; start[i] != '\0'; i++) {
        if (i == n)
            return false;
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
        if (begins_with(head, n, other_kinds[i].start)) {
            lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0, "%s", other_kinds[i].what);
            lmq_hint(err, "%s", other_kinds[i].hint);
            return true;
        }
    return false;
}
