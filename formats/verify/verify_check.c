/*
 * verify_check.c - what was found in a file.
 */
#include "config.h"

#include "formats/verify/verify_check.h"

#include <string.h>

#include "base/report.h"

void
lmq_check_add(struct lmq_check *check, const char *section, const char *name,
              uint64_t offset, const char *message)
{
    json_t *problem = json_object();

    lmq_put(&problem, "file", lmq_json_text(check->file));
    lmq_put(&problem, "section", json_string(section));
    lmq_put(&problem, "name", lmq_json_text(name));
    lmq_put(&problem, "offset", lmq_json_size(offset));
    lmq_put(&problem, "message", json_string(message));
    lmq_append(&check->problems, problem);
}
