/*
 * metrics.c - the names of all metrics of a validation.
 *
 * A new one is: its value, where the report is made (drift.c; evidence.c of
 * layers, tensors and positions; attribute.c; task_scores.c; validate.c and
 * setup.c of the run itself); its name here, or no gate can name it; and its
 * entry in lmquant-validate(1), which test_manual.sh compares with this list.
 */
#include "config.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "validate/drift.h"

/* '#' stands for the number of an element. */
static const char *const metrics[] = {
    "tokens", "scored", "ctx", "seconds", "tokens_per_second", "partial",
    "reference.ppl", "reference.nll", "reference.bits_per_byte",
    "model.ppl", "model.nll", "model.bits_per_byte",
    "ppl_ratio", "ppl_ratio_stderr",
    "delta_nll", "delta_nll_stderr", "delta_nll_stderr_by_document",
    "kld.mean", "kld.stderr", "kld.stderr_by_document", "kld.median",
    "kld.p90", "kld.p95", "kld.p99", "kld.p999", "kld.max",
    "top1_agreement", "top5_agreement", "rms_delta_p", "total_variation",
    "flips.rate", "flips.lost", "flips.gained",
    "logit_drift.max_abs", "logit_drift.rms", "logit_drift.mean_abs",
    "logit_drift.cosine",
    "layers.#.rms", "layers.#.relative_rms", "layers.#.cosine",
    "tensors.#.sqnr_db", "tensors.#.max_abs",
    "positions.#.kld", "worst.#.kld",
    "floor.kld", "floor.logit_max_abs",
    "task.questions", "task.reference.accuracy",
    "task.reference.accuracy_norm", "task.model.accuracy",
    "task.model.accuracy_norm", "task.accuracy_drop",
    "task.accuracy_norm_drop",
    "task.flips.rate", "task.flips.lost", "task.flips.gained",
    "task.flips.changed", "task.flips.p",
    "task.flips_norm.rate", "task.flips_norm.lost", "task.flips_norm.gained",
    "task.flips_norm.changed", "task.flips_norm.p",
    "attribution.kld", "attribution.weights", "attribution.activations",
    "attribution.keys_values",
    "attribution.kv.#.kld", "attribution.kv.#.added",
    "attribution.parts.#.share", "attribution.layers.#.share",
    "attribution.tensors.#.share", "attribution.cure.#.share",
    "attribution.cure.#.bits_added",
};

/* The elements that lists have at most. */
static const struct {
    const char *name;
    size_t n;
} lists[] = {
    {"positions.", LMQ_POSITION_BINS},
    {"worst.", LMQ_WORST},
    {"attribution.kv.", LMQ_ATTRIBUTED_KV},
    {"attribution.parts.", LMQ_ATTRIBUTED_PARTS},
};

static bool
matches(const char *pattern, const char *name, size_t n)
{
    const char *end = name + n;

    for (; *pattern != '\0'; pattern++) {
        if (*pattern == '#') {
            const char *start = name;
            while (name < end && *name >= '0' && *name <= '9')
                name++;
            if (name == start)
                return false;
        } else if (name == end || *name++ != *pattern) {
            return false;
        }
    }
    return name == end;
}

/* A slip of the pen shows before the work. */
enum lmq_status
lmq_validate_check_gate(const char *gate, struct lmq_error *err)
{
    const char *metric = gate + strspn(gate, " \t");
    size_t n = strcspn(metric, "<>= \t");
    enum lmq_status status = lmq_gate_check(gate, err);

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        size_t n_name = strlen(lists[i].name);
        if (status == LMQ_OK && strncmp(metric, lists[i].name, n_name) == 0 &&
            strtoul(metric + n_name, NULL, 10) >= lists[i].n)
            return lmq_fail(err, LMQ_ERR_ARG, 0,
                            "the gate '%s' names what is not there: the last "
                            "is %s%zu",
                            gate, lists[i].name, lists[i].n - 1);
    }
    for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++)
        if (status == LMQ_OK && matches(metrics[i], metric, n))
            return LMQ_OK;
    if (status != LMQ_OK)
        return status;
    lmq_fail(err, LMQ_ERR_ARG, 0, "the gate '%s' names no metric", gate);
    lmq_hint(err, "as in 'kld.mean<=0.01', 'ppl_ratio<1.01', "
                  "'top1_agreement>=0.98'; lmquant-validate(1) lists them");
    return LMQ_ERR_ARG;
}
