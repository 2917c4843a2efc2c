/*
 * output_name.c - whether the name of an output says what it will be.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

static const struct {
    const char *ending, *format, *advice;
} endings[] = {
    {".lmq", "a container", "'lmquant convert' writes containers"},
    {".gguf", "GGUF", "'lmquant export --to gguf' writes that"},
    {".safetensors", "safetensors",
     "'lmquant export --to safetensors' writes that, into a folder"},
    {".bin", "llama2.c or PyTorch",
     "'lmquant export --to llama2c' writes that of llama2.c"},
    {".pth", "PyTorch", "that is not written"},
    {".pt", "PyTorch", "that is not written"},
    {".json", "JSON", "--json prints that, to standard output"},
    {".yaml", "YAML", "--yaml prints that, to standard output"},
    {".html", "a page", "'lmquant validate --report' writes that"},
};

static bool
ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    while (n > 0 && text[n - 1] == '/')
        n--;
    return n >= m && strncmp(text + n - m, end, m) == 0;
}

bool
check_output_name(const char *output, const char *written)
{
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        if (strcmp(endings[i].ending, written) == 0 ||
            !ends_with(output, endings[i].ending))
            continue;
        struct lmq_error err = {.status = LMQ_ERR_ARG};
        name_file(&err, output);
        snprintf(err.message, sizeof(err.message),
                 "the name says %s, but %s is written", endings[i].format,
                 written);
        snprintf(err.hint, sizeof(err.hint), "%s; or choose another name",
                 endings[i].advice);
        report_error(&err);
        return false;
    }
    return true;
}

char *
output_folder(const char *output)
{
    const char *slash = strrchr(output, '/');
    size_t n = slash == NULL ? 1 : (size_t)(slash - output);
    char *folder;

    if (n == 0) /* of the root itself */
        n = 1;
    folder = malloc(n + 1);
    if (folder == NULL)
        return NULL;
    memcpy(folder, slash == NULL ? "." : output, n);
    folder[n] = '\0';
    return folder;
}
