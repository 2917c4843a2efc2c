/*
 * report_html.c - a validation report as one self-contained HTML page.
 *
 * No script, nothing from the network; charts are SVG, each with a title and
 * a description for those who do not see it; the longer lists stand there as
 * tables too.
 */
#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/output.h"
#include "lmquant.h"

/* ---- Text ---- */

#define put lmq_buffer_print /* what failed shows at the end */

/* Text from elsewhere: nothing in it is markup. */
static void
put_text(struct lmq_buffer *page, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&':
            put(page, "&amp;");
            break;
        case '<':
            put(page, "&lt;");
            break;
        case '>':
            put(page, "&gt;");
            break;
        case '"':
            put(page, "&quot;");
            break;
        case '\n':
            put(page, "\xe2\x8f\x8e"); /* a return symbol */
            break;
        default:
            put(page, "%c", *text);
        }
    }
}

static double
number(const struct lmq_report *node, const char *path)
{
    return lmq_report_number(node, path);
}

static const char *
string(const struct lmq_report *node, const char *path)
{
    return lmq_report_string(node, path);
}

static const char *
plural(double n)
{
    return n == 1 ? "" : "s";
}

/* ---- Frame ---- */

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1b1f24;--soft:#5b6570;"
    "--line:#d8dee4;--paper:#fff;--card:#f6f8fa;--a:#2563a8;--b:#c2571a;"
    "--good:#1a7f37;--bad:#b42318}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa5b1;"
    "--line:#30363d;--paper:#0d1117;--card:#161b22;--a:#6cb0ff;--b:#f0a35e;"
    "--good:#56d364;--bad:#ff7b72}}"
    "*{box-sizing:border-box}"
    "body{margin:0 auto;max-width:62rem;padding:2rem 1.25rem 4rem;"
    "font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;"
    "color:var(--ink);background:var(--paper);overflow-wrap:anywhere}"
    "h1{font-size:1.6rem;margin:0 0 .25rem}h2{font-size:1.15rem;"
    "margin:2.2rem 0 .6rem}p{margin:.4rem 0}"
    ".soft{color:var(--soft)}"
    ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(10rem,"
    "1fr));gap:.75rem;margin:1.2rem 0}"
    ".card{background:var(--card);border:1px solid var(--line);"
    "border-radius:.5rem;padding:.75rem .9rem}"
    ".card b{display:block;font-size:1.35rem;font-variant-numeric:"
    "tabular-nums}"
    ".card span{color:var(--soft);font-size:.85rem}"
    "table{border-collapse:collapse;width:100%;font-size:.92rem;"
    "font-variant-numeric:tabular-nums}"
    "th,td{text-align:right;padding:.28rem .5rem;border-bottom:1px solid "
    "var(--line)}"
    "td{white-space:nowrap}th{overflow-wrap:normal}"
    "th:first-child,td:first-child,th.text{text-align:left}"
    "td:first-child,td.text{white-space:normal}"
    "td.text{text-align:left;font-family:ui-monospace,monospace}"
    "table.bars td:first-child{width:30%}table.bars td:nth-child(2)"
    "{width:50%}table.facts td:first-child{width:8rem}"
    "mark{background:none;color:var(--b);font-weight:600}"
    "figure{margin:0}figcaption{margin-top:.3rem;color:var(--soft);"
    "font-size:.88rem}"
    "svg{width:100%;height:100%;display:block}"
    /* Labels are no part of the drawing: it stretches, they do not. */
    ".plot{display:grid;grid-template-columns:auto 1fr;gap:.3rem .5rem;"
    "margin:.4rem .75rem 0 0;color:var(--soft);font-size:.75rem;"
    "line-height:1.2}"
    ".plot svg{height:11rem;overflow:visible}"
    ".plot .y{display:flex;flex-direction:column;"
    "justify-content:space-between;text-align:right}"
    ".plot .x{grid-column:2;display:flex;justify-content:space-between;"
    "gap:.5rem}.plot .x :last-child{text-align:right}"
    ".plot .ticks{position:relative;height:1.2em}.plot .ticks span"
    "{position:absolute;transform:translateX(-50%);white-space:nowrap}"
    ".plot .name{grid-column:2;text-align:center}"
    ".bar{fill:var(--a)}.mark,.axis,.line,.dot{fill:none;"
    "vector-effect:non-scaling-stroke}"
    ".mark{stroke:var(--b);stroke-width:1.5}.axis{stroke:var(--line)}"
    ".line{stroke:var(--a);stroke-width:2}.dot{stroke:var(--a);"
    "stroke-width:6;stroke-linecap:round}"
    ".strip{height:.75rem}.key{color:var(--b)}"
    ".good{color:var(--good)}.bad{color:var(--bad)}"
    "details summary{cursor:pointer;color:var(--soft);margin-top:.4rem}"
    "code{font-family:ui-monospace,monospace;font-size:.9em}"
    /* Narrow: each bad place is a card of its own. */
    "@media(max-width:42rem){table.worst tr{display:grid;"
    "grid-template-columns:1fr 1fr;border-bottom:1px solid var(--line);"
    "padding:.4rem 0}table.worst th{display:none}"
    "table.worst td{border:0;text-align:left;padding:.1rem .3rem;"
    "white-space:normal}table.worst td.place{grid-column:1/3}"
    "table.worst td[data-is]::before{content:attr(data-is) ': ';"
    "color:var(--soft);font-family:system-ui,sans-serif}}"
    "@media print{body{padding:0;max-width:none}details{display:none}"
    "figure,tr,.card{break-inside:avoid}}";

static void
put_card(struct lmq_buffer *page, const char *label, const char *format,
         double value, const char *note)
{
    char text[64];

    snprintf(text, sizeof(text), format, value);
    put(page, "<div class=card><span>%s</span><b>%s</b><span>%s</span></div>",
        label, text, note);
}

static void
put_cards(struct lmq_buffer *page, const struct lmq_report *r)
{
    char note[128];

    put(page, "<div class=cards>");
    snprintf(note, sizeof(note), "%.4f against %.4f, &plusmn;&nbsp;%.5f",
             number(r, "model.ppl"), number(r, "reference.ppl"),
             number(r, "ppl_ratio_stderr"));
    put_card(page, "Perplexity ratio", "%.5f", number(r, "ppl_ratio"), note);
    snprintf(note, sizeof(note), "nats, &plusmn;&nbsp;%.1e; median&nbsp;%.1e",
             number(r, "kld.stderr"), number(r, "kld.median"));
    put_card(page, "KL divergence, mean", "%.3e", number(r, "kld.mean"),
             note);
    snprintf(note, sizeof(note), "five likeliest: %.2f %%",
             100 * number(r, "top5_agreement"));
    put_card(page, "Same top token", "%.2f %%",
             100 * number(r, "top1_agreement"), note);
    snprintf(note, sizeof(note), "total variation %.3f %%",
             100 * number(r, "total_variation"));
    put_card(page, "Probability, rms shift", "%.3f %%",
             100 * number(r, "rms_delta_p"), note);
    put(page, "</div>");
}

static void
put_gates(struct lmq_buffer *page, const struct lmq_report *r)
{
    const struct lmq_report *gates = lmq_report_at(r, "gates");
    size_t n_broken = 0;

    if (lmq_report_length(gates) == 0)
        return;
    for (size_t i = 0; i < lmq_report_length(gates); i++)
        n_broken += !(number(lmq_report_item(gates, i), "held") != 0);
    put(page, "<h2>Gates</h2>");
    if (n_broken > 0)
        put(page, "<p class=bad>%zu of %zu %s not hold.</p>", n_broken,
            lmq_report_length(gates), n_broken == 1 ? "does" : "do");
    put(page, "<table><tr><th>gate<th>value<th>held</tr>");
    for (size_t i = 0; i < lmq_report_length(gates); i++) {
        const struct lmq_report *gate = lmq_report_item(gates, i);
        int is_held = number(gate, "held") != 0;
        put(page, "<tr><td><code>");
        put_text(page, string(gate, "gate"));
        put(page, "</code><td>%.6g<td class=%s>%s</tr>",
            number(gate, "value"), is_held ? "good" : "bad",
            is_held ? "yes" : "NO");
    }
    put(page, "</table>");
}

/* ---- Charts ---- */

/* The units of a drawing, which is stretched to the room that it gets; so
 * strokes keep their width, and all letters stand beside it. */
#define WIDTH 1000.0
#define HEIGHT 200.0

static void
open_chart(struct lmq_buffer *page, const char *id, const char *title,
           const char *description, const char *top, const char *bottom)
{
    put(page,
        "<figure><div class=plot><div class=y><span>%s</span><span>%s</span>"
        "</div><svg viewBox='0 -4 %g %g' preserveAspectRatio=none role=img "
        "aria-labelledby='%s-t %s-d'><title id=%s-t>%s</title><desc id=%s-d>"
        "%s</desc><path class=axis d='M0 %gH%g' />",
        top, bottom, WIDTH, HEIGHT + 8, id, id, id, title, id, description,
        HEIGHT, WIDTH);
}

static double
plot_y(double part)
{
    return HEIGHT - part * HEIGHT;
}

/* The percentiles by number: lines may be too near for letters. */
static void
put_marks(struct lmq_buffer *page, const struct lmq_report *r, double from,
          double to)
{
    static const char *const paths[] = {"kld.median", "kld.p90", "kld.p99",
                                        "kld.max"};

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        double value = number(r, paths[i]);
        if (!(value > 0))
            continue;
        double part =
            fmin(fmax((log10(value) - from) / (to - from), 0), 1);
        put(page, "<path class=mark d='M%.1f 0V%g' />", part * WIDTH, HEIGHT);
    }
}

/* Divergence on a logarithmic axis, with the percentiles as lines. */
static void
put_histogram(struct lmq_buffer *page, const struct lmq_report *r)
{
    const struct lmq_report *counts =
        lmq_report_at(r, "kld.histogram.counts");
    double from = number(r, "kld.histogram.log10_from");
    double to = number(r, "kld.histogram.log10_to"), most = 1;
    size_t n = lmq_report_length(counts);
    char text[64];

    for (size_t i = 0; i < n; i++)
        most = fmax(most, number(lmq_report_item(counts, i), ""));
    put(page, "<h2>Divergence, position by position</h2>");
    snprintf(text, sizeof(text), "%.0f", most);
    open_chart(page, "kld", "Histogram of the KL divergence",
               "How many positions have which divergence, on a logarithmic "
               "axis; lines mark percentiles.",
               text, "0");
    for (size_t i = 0; i < n; i++) {
        double part = number(lmq_report_item(counts, i), "") / most;
        double width = WIDTH / (double)n;
        put(page, "<rect class=bar x=%.1f y=%.1f width=%.1f height=%.1f />",
            width * (double)i, plot_y(part), width - 1.5, part * HEIGHT);
    }
    put_marks(page, r, from, to);
    put(page, "</svg><div class='x ticks'>");
    for (double p = from; p <= to; p += 2)
        put(page, "<span style='left:%.2f%%'>1e%.0f</span>",
            100 * (p - from) / (to - from), p);
    put(page, "</div><div class=name>KL divergence, nats</div></div>"
              "<figcaption><span class=key>Lines</span>, from the left: "
              "50&nbsp;%% (%.2e), 90&nbsp;%% (%.2e), 99&nbsp;%% (%.2e), the "
              "largest (%.2e). Each scored position counts once. The mean is "
              "ruled by the few on the right; the median is what a typical "
              "token sees.</figcaption></figure>",
        number(r, "kld.median"), number(r, "kld.p90"), number(r, "kld.p99"),
        number(r, "kld.max"));
}

static void
put_points(struct lmq_buffer *page, const struct lmq_report *list, const char *key,
           double most)
{
    size_t n = lmq_report_length(list);

    put(page, "<polyline class=line points='");
    for (int dots = 0; dots < 2; dots++) {
        for (size_t i = 0; i < n && (dots == 0 || n <= 64); i++) {
            double value = number(lmq_report_item(list, i), key);
            double x = WIDTH * (n < 2 ? 0.5 : (double)i / (double)(n - 1));
            double y = plot_y(most > 0 ? value / most : 0);
            if (value == value)
                put(page, dots ? "M%.1f %.1fh0" : "%.1f,%.1f ", x, y);
        }
        put(page, dots ? "' />" : "' /><path class=dot d='");
    }
}

/* A line through values from 0 on. */
static void
put_line_chart(struct lmq_buffer *page, const char *id, const char *title,
               const char *description, const struct lmq_report *list,
               const char *key, const char *axis, const char *first,
               const char *last, const char *caption)
{
    double most = 0;
    char text[64];

    for (size_t i = 0; i < lmq_report_length(list); i++) {
        double value = number(lmq_report_item(list, i), key);
        most = value > most ? value : most;
    }
    put(page, "<h2>%s</h2>", title);
    snprintf(text, sizeof(text), "%.3g", most);
    open_chart(page, id, title, description, text, "0");
    put_points(page, list, key, most);
    put(page, "</svg><div class=x><span>");
    put_text(page, first);
    put(page, "</span><span>");
    put_text(page, last);
    put(page, "</span></div><div class=name>%s</div></div><figcaption>%s"
              "</figcaption></figure>",
        axis, caption);
}

/* Horizontal bars, in parts of the widest. */
static void
put_bars(struct lmq_buffer *page, const struct lmq_report *list, size_t from,
         size_t to)
{
    double most = 1e-30;

    for (size_t i = 0; i < lmq_report_length(list); i++)
        most = fmax(most, number(lmq_report_item(list, i), "share"));
    put(page, "<table class=bars>");
    for (size_t i = from; i < to; i++) {
        const struct lmq_report *row = lmq_report_item(list, i);
        double share = number(row, "share");
        put(page, "<tr><td><code>");
        put_text(page, string(row, "name"));
        put(page,
            "</code><td><svg class=strip viewBox='0 0 300 12' "
            "aria-hidden=true preserveAspectRatio=none><rect class=bar "
            "width=%.1f height=12 /></svg><td>%.4g %%</tr>",
            300 * fmin(fmax(share / most, 0), 1), 100 * share);
    }
    put(page, "</table>");
}

#define ROWS_AT_ONCE 12

/* The first of a long list, which is sorted; the rest on request. */
static void
put_shares(struct lmq_buffer *page, const struct lmq_report *list)
{
    size_t n = lmq_report_length(list);
    size_t first = n <= ROWS_AT_ONCE + 2 ? n : ROWS_AT_ONCE;

    put_bars(page, list, 0, first);
    if (first == n)
        return;
    put(page, "<details><summary>%zu more</summary>", n - first);
    put_bars(page, list, first, n);
    put(page, "</details>");
}

static void
put_bar_row(struct lmq_buffer *page, const char *label, double part)
{
    put(page,
        "<tr><td>%s<td><svg class=strip viewBox='0 0 300 12' "
        "aria-hidden=true preserveAspectRatio=none><rect "
        "class=bar width=%.1f height=12 /></svg><td>%.3f %%</tr>",
        label, 300 * fmin(fmax(part, 0), 1), 100 * part);
}

/* ---- Sections ---- */

static void
put_agreement(struct lmq_buffer *page, const struct lmq_report *r)
{
    put(page, "<h2>Agreement</h2><figure><table class=bars>");
    put_bar_row(page, "same top token", number(r, "top1_agreement"));
    put_bar_row(page, "shared among the five likeliest",
                number(r, "top5_agreement"));
    put_bar_row(page, "shared probability",
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
    char last[32];

    snprintf(last, sizeof(last), "layer %.0f", (double)n - 2);
    put_line_chart(
        page, "layers", "Drift by layer",
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
        put(page, "<td>%.4e<td>%.4e<td>%.8f</tr>", number(layer, "rms"),
            number(layer, "relative_rms"), number(layer, "cosine"));
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
    put(page,
        "<h2>Where the divergence comes from</h2><p>Weights %.1f %%, "
        "activations %.1f %% (over %.0f token%s). Below: how much of the "
        "divergence goes away when a part is computed in float32.</p>",
        100 * number(a, "weights"), 100 * number(a, "activations"),
        number(a, "tokens"), plural(number(a, "tokens")));
    put_shares(page, lmq_report_at(a, "parts"));
    put(page, "<p class=soft>Layers:</p>");
    put_shares(page, lmq_report_at(a, "layers"));
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
    put_line_chart(page, "tensors", "Error by tensor",
                   "The signal to noise ratio of each quantized tensor in "
                   "decibels, in the order of the model.",
                   tensors, "sqnr_db", "tensors in order",
                   string(lmq_report_item(tensors, 0), "name"),
                   string(lmq_report_item(tensors, n - 1), "name"),
                   "Signal to quantization noise in dB, as measured when the "
                   "container was made. Higher is better; 6 dB are one bit.");
    put(page, "<details><summary>as a table</summary><table><tr><th>tensor"
              "<th>dB<th>max error</tr>");
    for (size_t i = 0; i < n; i++) {
        const struct lmq_report *tensor = lmq_report_item(tensors, i);
        put(page, "<tr><td><code>");
        put_text(page, string(tensor, "name"));
        put(page, "</code><td>%.2f<td>%.3e</tr>", number(tensor, "sqnr_db"),
            number(tensor, "max_abs"));
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
        put_text(page, string(w, "context"));
        put(page, "<mark>");
        put_text(page, string(w, "token"));
        put(page, "</mark><td data-is='reference, p'>%.3g&nbsp;%%<td "
                  "data-is='model, p'>%.3g&nbsp;%%<td class=text "
                  "data-is='reference says'>",
            100 * exp(-number(w, "reference_nll")),
            100 * exp(-number(w, "model_nll")));
        put_text(page, string(w, "reference_says"));
        put(page, "<td class=text data-is='model says'>");
        put_text(page, string(w, "model_says"));
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
    put_text(page, text);
    put(page, "</tr>");
}

static void
put_protocol(struct lmq_buffer *page, const struct lmq_report *r)
{
    const struct lmq_report *p = lmq_report_at(r, "protocol");

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
    put_row(page, "logits", "max shift %.4g, rms %.4g, cosine %.8f",
            number(r, "logit_drift.max_abs"), number(r, "logit_drift.rms"),
            number(r, "logit_drift.cosine"));
    put_row(page, "made by", "%s, %s, %.1f s", string(p, "tool"),
            string(p, "instruction_set"), number(r, "seconds"));
    put(page, "</table>");
}

static void
put_page(struct lmq_buffer *page, const struct lmq_report *r)
{
    put(page, "<!doctype html><html lang=en><meta charset=utf-8><meta "
              "name=viewport content='width=device-width,initial-scale=1'>"
              "<title>lmquant: ");
    put_text(page, string(r, "protocol.model.path"));
    put(page, "</title><style>%s</style><h1>Is it still the same model?</h1>"
              "<p class=soft>",
        style);
    put_text(page, string(r, "protocol.model.path"));
    put(page, ", judged against ");
    put_text(page, string(r, "protocol.reference.path"));
    put(page, " over %.0f token%s</p>", number(r, "scored"),
        plural(number(r, "scored")));
    if (number(r, "partial") != 0)
        put(page, "<p class=bad>Partial: the run was interrupted; this is "
                  "what was done until then.</p>");
    put_cards(page, r);
    put_gates(page, r);
    put_histogram(page, r);
    put_agreement(page, r);
    put_layers(page, r);
    put_attribution(page, r);
    put_line_chart(page, "positions", "Drift by position",
                   "The mean divergence by the position in the window.",
                   lmq_report_at(r, "positions"), "kld",
                   "position in the window", "beginning", "end",
                   "Mean KL divergence of the positions in each sixteenth of "
                   "the window.");
    put_tensors(page, r);
    put_worst(page, r);
    put_protocol(page, r);
    put(page, "</html>\n");
}

enum lmq_status
lmq_validate_html(const struct lmq_report *report, char **text,
                  struct lmq_error *err)
{
    struct lmq_buffer page = {0};

    put_page(&page, report);
    *text = lmq_buffer_text(&page);
    return *text == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

enum lmq_status
lmq_validate_write_html(const struct lmq_report *report, const char *path,
                        int replaces, struct lmq_error *err)
{
    struct lmq_output *output;
    char *text;
    enum lmq_status status = lmq_validate_html(report, &text, err);

    if (status != LMQ_OK)
        return status;
    size_t n = strlen(text);
    status = lmq_output_create(path, n, replaces != 0, NULL, &output, err);
    if (status == LMQ_OK) {
        status = lmq_output_write(output, 0, text, n, err);
        if (status == LMQ_OK)
            status = lmq_output_commit(output, err);
        else
            lmq_output_abort(output);
    }
    free(text);
    return status;
}
