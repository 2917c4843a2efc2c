/*
 * fuzz_section.c - any bytes as the metadata or as an embedded file, deflated
 * or not, of a container that is whole otherwise, checksums and all.
 *
 * The first byte says what the others are.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/output.h"
#include "formats/lmq/lmq.h"
#include "lmquant.h"
#include "tests/build/read_all.h"
#include "tests/fuzz/fuzz.h"

static const char empty_metadata[] = "{}";

static void
write_container(const char *path, const struct lmq_content *contents, size_t n)
{
    struct lmq_layout_plan plan;
    struct lmq_output *output = NULL;
    struct lmq_error err;

    if (lmq_write_plan(NULL, 0, contents, n, &plan, &err) != LMQ_OK ||
        lmq_output_create(path, plan.file_size, true, NULL, &output, &err) !=
            LMQ_OK)
        return;
    if (lmq_write_frame(output, &plan, NULL, 0, contents, n, &err) == LMQ_OK)
        lmq_output_commit(output, &err);
    else
        lmq_output_abort(output);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (n < 4)
        return 0;
    struct lmq_content contents[2] = {
        {.type = LMQ_SECTION_METADATA,
         .name = "",
         .bytes = (const unsigned char *)empty_metadata,
         .size = 2},
        {.type = LMQ_SECTION_FILE,
         .name = "tokenizer.json",
         .bytes = bytes + 4,
         .size = n - 4},
    };
    bool is_metadata = (bytes[0] & 3) == 0;
    if (is_metadata) {
        contents[0].bytes = bytes + 4;
        contents[0].size = n - 4;
    }
    /* A stream that claims any size: 24 bits of it. */
    contents[1].is_deflated = !is_metadata && (bytes[0] & 3) != 1;
    contents[1].raw_size = bytes[1] | (size_t)bytes[2] << 8 |
                           (size_t)bytes[3] << 16;
    char path[256];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof(path), "%s/lmquant-fuzz-%ld.lmq",
             folder == NULL ? "/tmp" : folder, (long)getpid());
    struct lmq_tokenizer *tokenizer = NULL;
    struct lmq_error err;
    write_container(path, contents, is_metadata ? 1 : 2);
    inspect_all(path);
    if (lmq_tokenizer_from_path(path, NULL, &tokenizer, &err) == LMQ_OK)
        lmq_tokenizer_close(tokenizer);
    unlink(path);
    return 0;
}
