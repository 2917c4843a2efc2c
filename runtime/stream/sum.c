/*
 * sum.c - what a block gives, added to the residual stream.
 *
 *   x = keep * (x or input) + scale * add * (out + bias)
 *
 * Where several streams mix it is written to all of them: streams.c.
 */
#include "config.h"

#include "runtime/stream/sum.h"

#include <string.h>

#include "runtime/layer/norm.h"
#include "runtime/layer/streams.h"

void
lmq_sum_token(const struct lmq_member *member, const struct lmq_sum *sum,
              const float *bias, bool is_normed,
              const struct lmq_gain *post_norm, size_t t)
{
    const struct lmq_kernels *kernels = member->kernels;
    size_t dim = member->h->dim;
    float scale = (float)member->h->residual_scale * (float)sum->add;
    float *x = member->work->x + t * dim;     /* (dim) */
    float *out = member->work->out + t * dim; /* (dim) */

    if (member->h->has_normed_residual)
        memcpy(x, sum->input + t * dim, dim * sizeof(*x)); /* x = input */
    if (sum->keep < 1 || sum->keep > 1)
        kernels->scale(x, dim, (float)sum->keep); /* x *= keep */
    if (is_normed) {
        if (bias != NULL)
            kernels->add(out, bias, dim); /* out += bias */
        lmq_norm_block(member->h, post_norm, out, dim); /* out = norm(out) */
        bias = NULL;
    }
    if (lmq_has_hyper_streams(member->h)) {
        if (bias != NULL)
            kernels->add(out, bias, dim); /* out += bias */
        lmq_hyper_write(member, t, out); /* streams += scale * out */
        return;
    }
    kernels->axpy(x, out, dim, scale); /* x += scale * out */
    if (bias != NULL)
        kernels->axpy(x, bias, dim, scale); /* x += scale * bias */
}
