/*
 * fuzz_config.c - any bytes as a config.json, and as the model of a container.
 */
#include "config.h"

#include <stdlib.h>

#include "formats/hf_config.h"
#include "tests/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct lmq_hparams hparams, back;
    struct lmq_error err;
    bool is_known;
    json_t *json;

    lmq_hparams_init(&hparams);
    if (lmq_config_parse(bytes, n, &hparams, &is_known, &err) == LMQ_OK &&
        is_known && lmq_hparams_check(&hparams, &err) == LMQ_OK) {
        json = lmq_hparams_to_json(&hparams);
        if (lmq_hparams_from_json(json, &back, &err) != LMQ_OK ||
            lmq_hparams_check(&back, &err) != LMQ_OK)
            abort(); /* what was read can be stored and read again */
        json_decref(json);
    }
    if (lmq_json_parse(bytes, n, &json, &err) == LMQ_OK) {
        lmq_hparams_from_json(json, &back, &err);
        json_decref(json);
    }
    return 0;
}
