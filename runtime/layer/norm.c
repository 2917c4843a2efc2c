/*
 * norm.c - norms by their kind.
 *
 *   RMS:    out = x / sqrt(mean(x^2) + eps) * weight
 *   layer:  out = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias
 *   plain:  either without weight and bias
 */
#include "config.h"

#include "runtime/layer/norm.h"

static void
norm(const struct lmq_hparams *hparams, float eps,
     const struct lmq_gain *gain, const float *x, size_t n, float *out)
{
    const struct lmq_kernels *kernels = lmq_kernels();

    switch (hparams->norm) {
    case LMQ_NORM_LAYER:
        kernels->layernorm(x, gain->weight, gain->bias, n, eps, out);
        break;
    case LMQ_NORM_LAYER_PLAIN:
        kernels->layernorm(x, NULL, NULL, n, eps, out);
        break;
    case LMQ_NORM_RMS_PLAIN:
        kernels->rmsnorm(x, NULL, n, eps, out);
        break;
    default:
        kernels->rmsnorm(x, gain->weight, n, eps, out);
    }
}

void
lmq_norm(const struct lmq_hparams *hparams, const struct lmq_gain *gain,
         const float *x, size_t n, float *out)
{
    norm(hparams, (float)hparams->norm_eps, gain, x, n, out);
}

void
lmq_norm_block(const struct lmq_hparams *hparams, const struct lmq_gain *gain,
               float *x, size_t n)
{
    double eps = hparams->post_norm_eps > 0 ? hparams->post_norm_eps
                                            : hparams->norm_eps;

    norm(hparams, (float)eps, gain, x, n, x);
}

void
lmq_norm_again(const struct lmq_model *model, float *x, size_t n)
{
    const struct lmq_hparams *h = &model->hparams;

    for (size_t t = 0; t < n && h->has_loop_norm; t++)
        lmq_norm(h, &model->output_norm, x + t * h->dim, h->dim,
                 x + t * h->dim);
}

void
lmq_norm_latents(const struct lmq_hparams *hparams,
                 const struct lmq_gain *gain, float *x, size_t n)
{
    double eps = hparams->latent_eps > 0 ? hparams->latent_eps
                                         : hparams->norm_eps;

    lmq_kernels()->rmsnorm(x, gain->weight, n, (float)eps, x);
}

struct lmq_gain
lmq_gain_from(const struct lmq_gain *gain, size_t first)
{
    return (struct lmq_gain){
        .weight = gain->weight == NULL ? NULL : gain->weight + first,
        .bias = gain->bias == NULL ? NULL : gain->bias + first,
    };
}
