/*
 * probe.c - recognises formats by content.
 */
#include "config.h"

#include "formats/probe.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/path.h"
#include "base/mem.h"
#include "base/size.h"
#include "base/text/ends.h"
#include "formats/checkpoint/member_name.h"
#include "formats/checkpoint/other_kinds.h"
#include "formats/formats.h"

/* The name that an output was given is often not its own: of a set, each file
 * has a number. */
static void
hint_at_set(const char *path, struct lmq_error *err)
{
    const char *name = lmq_path_base(path);
    const char *ending = strrchr(name, '.');
    const struct dirent *entry = NULL;
    struct lmq_member_name member;

    if (ending == NULL)
        return;
    char *folder = lmq_mem_text(path, (size_t)(name - path));
    DIR *list = folder == NULL ? NULL : opendir(name == path ? "." : folder);
    while (list != NULL && (entry = readdir(list)) != NULL)
        if (lmq_member_name_is_of(entry->d_name, name, (size_t)(ending - name),
                                  ending, &member) &&
            member.member == 1) {
            lmq_hint(err, "there is a set of that name; its first file stands "
                          "for it: %s%s", folder, entry->d_name);
            break;
        }
    if (list != NULL)
        closedir(list);
    free(folder);
}

/* So many bytes that every format can tell itself from the others; of a folder
 * its formats ask for names. */
enum lmq_status
lmq_probe_look(const char *path, struct lmq_probe *probe, struct lmq_error *err)
{
    struct stat info;
    struct lmq_input *input;

    *probe = (struct lmq_probe){.path = path};
    if (stat(path, &info) != 0) {
        bool is_missing = errno == ENOENT;
        enum lmq_status status = lmq_fail_errno(err, "cannot open");
        if (is_missing)
            hint_at_set(path, err);
        return status;
    }
    if (S_ISDIR(info.st_mode)) {
        probe->is_folder = true;
        return LMQ_OK;
    }
    enum lmq_status status = lmq_input_open(path, &input, err);
    if (status != LMQ_OK)
        return status;
    probe->size = lmq_input_size(input);
    probe->n_head = (size_t)lmq_u64_min(probe->size, sizeof(probe->head));
    status = lmq_input_read(input, 0, probe->head, probe->n_head, err);
    lmq_input_close(input);
    return status;
}

/* The first in the order of formats.c: those with a clear mark come before
 * those that only fit. */
enum lmq_status
lmq_probe_recognise(struct lmq_probe *probe, const struct lmq_format **format,
                    struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    probe->status = &status;
    probe->err = err;
    *format = NULL;
    for (size_t i = 0; *format == NULL && lmq_formats[i] != NULL; i++)
        if (lmq_formats[i]->probe(probe))
            *format = lmq_formats[i];
    return status;
}

/* What convert --part and --resume leave: "model.lmq.part". */
#define PART_ENDING ".lmq.part"

/* Folders that training and other libraries leave, by a file in them. */
static const struct {
    const char *ending, *what, *hint;
} other_folders[] = {
    {".distcp", "shards of torch.distributed.checkpoint",
     "torch.distributed.checkpoint.format_utils.dcp_to_torch_save makes one "
     "file of them"},
    {"_model_states.pt", "parts of a training run of DeepSpeed",
     "its zero_to_fp32.py, which lies beside them, makes a model of them"},
    {".h5", "a model of TensorFlow", "save it as safetensors"},
    {".msgpack", "a model of Flax", "save it as safetensors"},
    {".onnx", "a model as ONNX",
     "convert what it was made of; its weights have lost their names"},
};

/* Whether a file of the folder ends so. */
static bool
has_ending(const char *folder, const char *ending)
{
    DIR *list = opendir(folder);
    const struct dirent *entry;
    bool found = false;

    while (list != NULL && !found && (entry = readdir(list)) != NULL)
        found = lmq_ends_with(entry->d_name, ending);
    if (list != NULL)
        closedir(list);
    return found;
}

static enum lmq_status
fail_folder(const char *folder, struct lmq_error *err)
{
    if (has_ending(folder, PART_ENDING)) {
        lmq_fail(err, LMQ_ERR_FORMAT, 0,
                 "the folder has parts of a set that is not sealed");
        lmq_hint(err, "lmquant seal checks them and completes the set; what a "
                      "convert .resumes left, the same command goes on with");
        return LMQ_ERR_FORMAT;
    }
    for (size_t i = 0; i < sizeof(other_folders) / sizeof(other_folders[0]);
         i++)
        if (has_ending(folder, other_folders[i].ending)) {
            lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                     "the folder holds no model that is read here, but %s",
                     other_folders[i].what);
            lmq_hint(err, "%s", other_folders[i].hint);
            return LMQ_ERR_UNSUPPORTED;
        }
    lmq_fail(err, LMQ_ERR_FORMAT, 0, "the folder holds no model");
    lmq_hint(err, "expected model.safetensors, pytorch_model.bin, or the "
                  "index.json of either and its shards, or "
                  "consolidated.00.pth");
    return LMQ_ERR_FORMAT;
}

/* What it probably is, and what helps then: most wrong files are of few kinds.
 */
enum lmq_status
lmq_probe_fail(const struct lmq_probe *probe, struct lmq_error *err)
{
    if (probe->is_folder)
        return fail_folder(probe->path, err);
    if (lmq_ends_with(probe->path, PART_ENDING)) {
        lmq_fail(err, LMQ_ERR_FORMAT, 0,
                 "is a part of a container that is not complete");
        lmq_hint(err, "lmquant seal completes a set, convert with .resumes "
                      "what was begun");
        return LMQ_ERR_FORMAT;
    }
    if (probe->size == 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "is empty");
    if (probe->n_head >= 4 && memcmp(probe->head, "GGUF", 4) == 0) {
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                 "is a GGUF file that holds no tensors: a tokenizer, no "
                 "model");
        lmq_hint(err, ".tokenizer takes it");
        return LMQ_ERR_UNSUPPORTED;
    }
    if (lmq_fail_other_kind(probe->head, probe->n_head, err))
        return LMQ_ERR_UNSUPPORTED;
    lmq_fail(err, LMQ_ERR_FORMAT, 0, "is not a checkpoint in any known format");
    lmq_hint(err, "known are: safetensors and PyTorch (file or folder), GGUF, "
                  "llama2.c .bin, .lmq");
    return LMQ_ERR_FORMAT;
}
