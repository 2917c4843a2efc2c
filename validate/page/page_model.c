/*
 * page_model.c - what a page says about one judged model.
 */
#include "config.h"

#include "validate/page/page.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>


/* ---- The verdict ---- */

void
lmq_page_verdict(struct lmq_buffer *page, const struct lmq_report *r)
{
    const char *result = string(r, "verdict.result");
    double gates = number(r, "verdict.gates");
    double broken = number(r, "verdict.broken");
    char value[NUMBER_SIZE];

    put(page, "<span class=%s><b>%s</b></span>",
        strcmp(result, "PASS") == 0 ? "good" : "bad", result);
    if (strcmp(result, "PARTIAL") == 0)
        put(page, ": interrupted; this is what was done until then");
    else if (gates == 0)
        put(page, ": no gate was set");
    else if (broken == 0)
        put(page, ": %.0f gate%s held", gates, plural(gates));
    if (!(broken > 0) || lmq_report_at(r, "verdict.gate") == NULL)
        return;
    put(page, ": <code>");
    lmq_page_text(page, string(r, "verdict.gate"));
    put(page, "</code> does not hold, it is %s",
        figure_text("%.9g", number(r, "verdict.value"), value));
    if (broken > 1)
        put(page, " (and %.0f more)", broken - 1);
}

/* ---- Figures ---- */

static void
put_card(struct lmq_buffer *page, const char *label, const char *format,
         double value, const char *note)
{
    char text[NUMBER_SIZE];

    put(page, "<div class=card><span>%s</span><b>%s</b><span>%s</span></div>",
        label, figure_text(format, value, text), note);
}

static void
put_cards(struct lmq_buffer *page, const struct lmq_report *r)
{
    char note[128], error[NUMBER_SIZE], ppl[NUMBER_SIZE], other[NUMBER_SIZE];

    put(page, "<div class=cards>");
    snprintf(note, sizeof(note), "%s against %s, &plusmn;&nbsp;%s",
             figure_text("%.4f", number(r, "model.ppl"), ppl),
             figure_text("%.4f", number(r, "reference.ppl"), other),
             figure_text("%.5f",
                         number(r, "ppl_ratio") *
                             larger_error(r, "delta_nll_stderr"),
                         error));
    put_card(page, "Perplexity ratio", "%.5f", number(r, "ppl_ratio"), note);
    snprintf(note, sizeof(note), "nats, &plusmn;&nbsp;%s; median&nbsp;%.1e",
             figure_text("%.1e", larger_error(r, "kld.stderr"), error),
             number(r, "kld.median"));
    put_card(page, "KL divergence, mean", "%.3e", number(r, "kld.mean"),
             note);
    snprintf(note, sizeof(note),
             "five likeliest: %.2f %%; flips: %.2f %% lost, %.2f %% gained",
             100 * number(r, "top5_agreement"), 100 * number(r, "flips.lost"),
             100 * number(r, "flips.gained"));
    put_card(page, "Same top token", "%.2f %%",
             100 * number(r, "top1_agreement"), note);
    snprintf(note, sizeof(note), "total variation %.3f %%",
             100 * number(r, "total_variation"));
    put_card(page, "Probability, rms shift", "%.3f %%",
             100 * number(r, "rms_delta_p"), note);
    put(page, "</div><p class=soft>&plusmn;: the standard error, the larger "
              "of the one by token and the one by document.</p>");
}

static void
put_gates(struct lmq_buffer *page, const struct lmq_report *r)
{
    const struct lmq_report *gates = lmq_report_at(r, "gates");
    size_t n_broken = 0;
    char value[NUMBER_SIZE], limit[NUMBER_SIZE];

    if (lmq_report_length(gates) == 0)
        return;
    for (size_t i = 0; i < lmq_report_length(gates); i++)
        n_broken += !(number(lmq_report_item(gates, i), "held") != 0);
    put(page, "<h2>Gates</h2>");
    if (n_broken > 0)
        put(page, "<p class=bad>%zu of %zu %s not hold.</p>", n_broken,
            lmq_report_length(gates), n_broken == 1 ? "does" : "do");
    put(page, "<table><tr><th>gate<th>value<th>bound<th>held</tr>");
    for (size_t i = 0; i < lmq_report_length(gates); i++) {
        const struct lmq_report *gate = lmq_report_item(gates, i);
        double bound = number(gate, "bound");
        int is_held = number(gate, "held") != 0;
        put(page, "<tr><td><code>");
        lmq_page_text(page, string(gate, "gate"));
        put(page, "</code><td>%s<td>%s<td class=%s>%s</tr>",
            figure_text("%.9g", number(gate, "value"), value),
            isnan(bound) ? "infinite" : figure_text("%.9g", bound, limit),
            is_held ? "good" : "bad", is_held ? "yes" : "NO");
    }
    put(page, "</table>");
}

/* ---- Sections ---- */

static void
put_agreement(struct lmq_buffer *page, const struct lmq_report *r)
{
    put(page, "<h2>Agreement</h2><figure><table class=bars>");
    lmq_page_bar_row(page, "same top token", number(r, "top1_agreement"));
    lmq_page_bar_row(page, "shared among the five likeliest",
                number(r, "top5_agreement"));
    lmq_page_bar_row(page, "shared probability",
                1 - number(r, "total_variation"));
    put(page, "</table><figcaption>Shared probability is 1 less the total "
              "variation: how often the model&rsquo;s draws would be accepted "
              "as drafts for the reference.</figcaption></figure>");
}

static void
put_layers(struct lmq_buffer *page, const struct lmq_report *r)
{
    const struct lmq_report *layers = lmq_report_at(r, "layers");
    size_t n = lmq_report_length(layers);
    char last[32], relative[NUMBER_SIZE], cosine[NUMBER_SIZE];

    snprintf(last, sizeof(last), "layer %.0f", (double)n - 2);
    lmq_page_line_chart(
        page, "Drift by layer",
        "The relative difference of the residual stream after each layer.",
        layers, "relative_rms", "after the layer", "embedding", last,
        "Root mean square of the difference of the residual stream, relative "
        "to the reference's. A step points at the layer that causes it.");
    put(page, "<details><summary>as a table</summary><table><tr><th>layer<th>"
              "rms<th>relative rms<th>cosine</tr>");
    for (size_t i = 0; i < n; i++) {
        const struct lmq_report *layer = lmq_report_item(layers, i);
        if (i == 0)
            put(page, "<tr><td>embedding");
        else
            put(page, "<tr><td>%.0f", number(layer, "layer"));
        put(page, "<td>%.4e<td>%s<td>%s</tr>", number(layer, "rms"),
            figure_text("%.4e", number(layer, "relative_rms"), relative),
            figure_text("%.8f", number(layer, "cosine"), cosine));
    }
    put(page, "</table></details>");
}

static void
put_attribution(struct lmq_buffer *page, const struct lmq_report *r)
{
    const struct lmq_report *a = lmq_report_at(r, "attribution");
    const struct lmq_report *kv = lmq_report_at(r, "attribution.kv");

    if (a == NULL)
        return;
    put(page, "<h2>Where the divergence comes from</h2>");
    if (number(a, "kld") <= 0) {
        put(page, "<p>There is none (over %.0f token%s).</p>",
            number(a, "tokens"), plural(number(a, "tokens")));
        return;
    }
    put(page, "<p>Weights %.1f %%, activations %.1f %%",
        percent(a, "weights"), percent(a, "activations"));
    if (strcmp(string(r, "protocol.kv"), "f32") != 0)
        put(page, ", keys and values %.1f %%", percent(a, "keys_values"));
    put(page,
        " (over %.0f token%s). Below: how much of the divergence goes away "
        "when a part is computed in float32.</p>",
        number(a, "tokens"), plural(number(a, "tokens")));
    lmq_page_shares(page, lmq_report_at(a, "parts"));
    put(page, "<p class=soft>Layers:</p>");
    lmq_page_shares(page, lmq_report_at(a, "layers"));
    lmq_page_tensors(page, a);
    put(page, "<p class=soft>Keys and values, and the mean divergence with "
              "them:</p><table><tr><th class=text>type<th>divergence<th>more "
              "than f32</tr>");
    for (size_t i = 0; i < lmq_report_length(kv); i++) {
        const struct lmq_report *type = lmq_report_item(kv, i);
        put(page, "<tr><td class=text>%s<td>%.3e<td>%+.3e</tr>",
            string(type, "type"), number(type, "kld"), number(type, "added"));
    }
    put(page, "</table>");
}

static void
put_tensors(struct lmq_buffer *page, const struct lmq_report *r)
{
    const struct lmq_report *tensors = lmq_report_at(r, "tensors");
    size_t n = lmq_report_length(tensors);

    if (n == 0)
        return;
    lmq_page_line_chart(
        page, "Error by tensor",
        "The signal to noise ratio of each quantized tensor in decibels, in "
        "the order of the model.",
        tensors, "sqnr_db", "tensors in order",
        string(lmq_report_item(tensors, 0), "name"),
        string(lmq_report_item(tensors, n - 1), "name"),
        "Signal to quantization noise in dB, as measured when the container "
        "was made. Higher is better; 6 dB are one bit.");
    put(page, "<details><summary>as a table</summary><table><tr><th>tensor"
              "<th>dB<th>max error</tr>");
    for (size_t i = 0; i < n; i++) {
        const struct lmq_report *tensor = lmq_report_item(tensors, i);
        put(page, "<tr><td><code>");
        lmq_page_text(page, string(tensor, "name"));
        double ratio = number(tensor, "sqnr_db");
        put(page, isfinite(ratio) ? "</code><td>%.2f" : "</code><td>exact",
            ratio);
        put(page, "<td>%.3e</tr>", number(tensor, "max_abs"));
    }
    put(page, "</table></details>");
}

static void
put_worst(struct lmq_buffer *page, const struct lmq_report *r)
{
    const struct lmq_report *worst = lmq_report_at(r, "worst");

    if (lmq_report_length(worst) == 0)
        return;
    put(page, "<h2>The worst positions</h2><table class=worst><tr><th>"
              "divergence<th class=text>text, and the token that followed<th>"
              "its probability<br>reference<th><br>model<th class=text>"
              "reference says<th class=text>model says</tr>");
    for (size_t i = 0; i < lmq_report_length(worst); i++) {
        const struct lmq_report *w = lmq_report_item(worst, i);
        put(page, "<tr><td data-is=divergence>%.2e<td class='text place'>"
                  "&hellip;",
            number(w, "kld"));
        lmq_page_text(page, string(w, "context"));
        put(page, "<mark>");
        lmq_page_text(page, string(w, "token"));
        put(page, "</mark><td data-is='reference, p'>%.3g&nbsp;%%<td "
                  "data-is='model, p'>%.3g&nbsp;%%<td class=text "
                  "data-is='reference says'>",
            100 * exp(-number(w, "reference_nll")),
            100 * exp(-number(w, "model_nll")));
        lmq_page_text(page, string(w, "reference_says"));
        put(page, "<td class=text data-is='model says'>");
        lmq_page_text(page, string(w, "model_says"));
        put(page, "</tr>");
    }
    put(page, "</table>");
}

static void
put_row(struct lmq_buffer *page, const char *label, const char *format, ...)
    LMQ_PRINTF(3, 4);

static void
put_row(struct lmq_buffer *page, const char *label, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    put(page, "<tr><td>%s<td class=text>", label);
    lmq_page_text(page, text);
    put(page, "</tr>");
}

static void
put_protocol(struct lmq_buffer *page, const struct lmq_report *r)
{
    const struct lmq_report *p = lmq_report_at(r, "protocol");
    char cosine[NUMBER_SIZE];

    put(page, "<h2>What was run, and how</h2><table class=facts>");
    put_row(page, "reference", "%s (%s, %.0f bytes), computed in float32",
            string(p, "reference.path"), string(p, "reference.format"),
            number(p, "reference.bytes"));
    put_row(page, "model", "%s (%s, %.0f bytes), activations %s, keys and "
                           "values %s",
            string(p, "model.path"), string(p, "model.format"),
            number(p, "model.bytes"), string(p, "activations"),
            string(p, "kv"));
    put_row(page, "windows",
            "%.0f of up to %.0f tokens, stride %.0f, scored: %s, %s",
            number(p, "windows"), number(r, "ctx"), number(p, "stride"),
            string(p, "score"),
            number(p, "bos") != 0 ? "each begins with BOS" : "without BOS");
    put_row(page, "text",
            "%.0f byte%s in %.0f document%s, CRC-32 %s; %.0f token%s, %.0f "
            "scored",
            number(p, "text_bytes"), plural(number(p, "text_bytes")),
            number(p, "documents"), plural(number(p, "documents")),
            string(p, "text_crc32"), number(r, "tokens"),
            plural(number(r, "tokens")), number(r, "scored"));
    if (number(r, "model.bits_per_byte") >= 0)
        put_row(page, "bits per byte", "reference %.5f, model %.5f",
                number(r, "reference.bits_per_byte"),
                number(r, "model.bits_per_byte"));
    put_row(page, "logits", "max shift %.4g, rms %.4g, cosine %s",
            number(r, "logit_drift.max_abs"), number(r, "logit_drift.rms"),
            figure_text("%.8f", number(r, "logit_drift.cosine"), cosine));
    if (lmq_report_at(r, "baseline") != NULL)
        put_row(page, "baseline",
                "%s of %s: KL divergence %.3e, perplexity ratio %.6f, same "
                "top token %.2f %%",
                string(r, "baseline.path"), string(r, "baseline.model"),
                number(r, "baseline.kld"), number(r, "baseline.ppl_ratio"),
                100 * number(r, "baseline.top1_agreement"));
    put_row(page, "made by", "%s, %s, %.1f s", string(p, "tool"),
            string(p, "instruction_set"), number(r, "seconds"));
    put(page, "</table>");
}

static void
put_task(struct lmq_buffer *page, const struct lmq_report *r)
{
    const struct lmq_report *t = lmq_report_at(r, "task");

    if (t == NULL)
        return;
    put(page, "<h2>Questions</h2><table class=facts>");
    put_row(page, "by likelihood",
            "right: reference %.2f %%, model %.2f %%; flips: %.0f lost, %.0f "
            "gained (p = %.2g)",
            100 * number(t, "reference.accuracy"),
            100 * number(t, "model.accuracy"), number(t, "flips.lost"),
            number(t, "flips.gained"), number(t, "flips.p"));
    put_row(page, "per byte",
            "right: reference %.2f %%, model %.2f %%; flips: %.0f lost, %.0f "
            "gained (p = %.2g)",
            100 * number(t, "reference.accuracy_norm"),
            100 * number(t, "model.accuracy_norm"),
            number(t, "flips_norm.lost"), number(t, "flips_norm.gained"),
            number(t, "flips_norm.p"));
    put_row(page, "of", "%.0f questions with %.0f choices, CRC-32 %s",
            number(t, "questions"), number(t, "choices"), string(t, "crc32"));
    put(page, "</table>");
}

void
lmq_page_model(struct lmq_buffer *page, const struct lmq_report *r)
{
    put_cards(page, r);
    put_gates(page, r);
    lmq_page_histogram(page, r);
    put_agreement(page, r);
    put_task(page, r);
    put_layers(page, r);
    put_attribution(page, r);
    lmq_page_line_chart(
        page, "Drift by position",
        "The mean divergence by the position in the window.",
        lmq_report_at(r, "positions"), "kld", "position in the window",
        "beginning", "end",
        "Mean KL divergence of the positions in each sixteenth of the window.");
    put_tensors(page, r);
    put_worst(page, r);
    put_protocol(page, r);
}
