/*
 * part_source.c - a checkpoint in a few digits, without reading all of it.
 */
#include "config.h"

#include "validate/parts/part_source.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32.h"
#include "base/report.h"
#include "convert/set_name.h"
#include "convert/sets/journal_bits.h"
#include "formats/model/hparams_json.h"

/* The sizes of its files and samples of their bytes, as when conversions are
 * gone on with. */
static json_t *
describe_files(const struct lmq_checkpoint *file, struct lmq_error *err)
{
    json_t *list = json_array();

    for (size_t i = 0; i < file->n_files; i++) {
        unsigned char id[LMQ_SET_ID];
        if (lmq_plan_sample(file->files[i], id, err) != LMQ_OK) {
            json_decref(list);
            return NULL;
        }
        lmq_append(&list, lmq_hex_of(id, sizeof(id)));
    }
    return list;
}

/* Options may have changed what the file says. */
static json_t *
describe_hparams(const struct lmq_checkpoint *file)
{
    json_t *json = lmq_hparams_to_json(&file->hparams);
    char *text = lmq_json_dump(json, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_t *crc = NULL;

    if (text != NULL)
        crc = lmq_json_crc(lmq_crc32(0, text, strlen(text)));
    free(text);
    json_decref(json);
    return crc;
}

json_t *
lmq_part_source(const struct lmq_checkpoint *file, struct lmq_error *err)
{
    json_t *json = json_object();

    lmq_put(&json, "description", describe_hparams(file));
    lmq_put(&json, "files", describe_files(file, err));
    return json;
}
