/*
 * report_html.c - a validation report as one self-contained HTML page.
 *
 * No script, nothing from the network; the longer lists of charts stand there
 * as tables too.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/output.h"
#include "base/text/c_locale.h"
#include "validate/page/page.h"

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
    "td.whole{white-space:nowrap}"
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
    ".plot svg{height:11rem;overflow:visible}.tall .plot svg{height:22rem}"
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
    "stroke-width:6;stroke-linecap:round}.off{stroke:var(--soft)}"
    "path.front{fill:none;stroke:var(--b);stroke-width:1.5;"
    "vector-effect:non-scaling-stroke}span.front{color:var(--a)}"
    ".field{position:relative;min-width:0}.tag{position:absolute;"
    "transform:translate(.35rem,-1.35em);color:var(--ink)}"
    ".wide,pre{overflow-x:auto}.wide td.text{min-width:9rem}"
    "details.model{border-top:1px solid var(--line);padding:.3rem 0}"
    "details.model>summary{color:var(--ink);font-weight:600}"
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
    /* Paper: what is open, and all columns; nobody scrolls there. */
    "@media print{body{padding:0;max-width:none}"
    "details:not([open]):not(.model){display:none}"
    ".wide{overflow:visible}.wide table{font-size:.7rem}"
    "h2{break-after:avoid}figure,tr,.card{break-inside:avoid}}";

void
lmq_page_begin(struct lmq_buffer *page, const char *title)
{
    put(page, "<!doctype html><html lang=en><meta charset=utf-8><meta "
              "name=viewport content='width=device-width,initial-scale=1'>"
              "<title>lmquant: ");
    lmq_page_text(page, title);
    put(page, "</title><style>%s</style>", style);
}

void
lmq_page_notes(struct lmq_buffer *page, const struct lmq_report *r)
{
    const struct lmq_report *notes = lmq_report_at(r, "notes");

    for (size_t i = 0; i < lmq_report_length(notes); i++) {
        put(page, "<p><b>Note:</b> ");
        lmq_page_text(page, string(lmq_report_item(notes, i), ""));
        put(page, "</p>");
    }
}

static void
put_subject(struct lmq_buffer *page, const char *subject,
            const struct lmq_report *r)
{
    put(page, "</p><p class=soft>");
    lmq_page_text(page, subject);
    put(page, ", judged against ");
    lmq_page_text(page, string(r, "protocol.reference.path"));
    put(page, " over %.0f token%s</p>", number(r, "scored"),
        plural(number(r, "scored")));
}

static void
put_one(struct lmq_buffer *page, const struct lmq_report *r)
{
    const char *path = string(r, "protocol.model.path");

    lmq_page_begin(page, path);
    put(page, "<h1>Is it still the same model?</h1><p>");
    lmq_page_verdict(page, r);
    put_subject(page, path, r);
    lmq_page_notes(page, r);
    lmq_page_model(page, r);
}

/* Each verdict that is not PASS by name. */
static void
put_failures(struct lmq_buffer *page, const struct lmq_report *models)
{
    for (size_t i = 0; i < lmq_report_length(models); i++) {
        const struct lmq_report *m = lmq_report_item(models, i);
        if (strcmp(string(m, "verdict.result"), "FAIL") != 0)
            continue;
        put(page, "<br>");
        lmq_page_text(page, string(m, "protocol.model.path"));
        put(page, ": ");
        lmq_page_verdict(page, m);
    }
}

static void
put_several(struct lmq_buffer *page, const struct lmq_report *r)
{
    const struct lmq_report *models = lmq_report_at(r, "models");
    size_t n = lmq_report_length(models);
    char subject[64];

    snprintf(subject, sizeof(subject), "%zu models", n);
    lmq_page_begin(page, subject);
    put(page, "<h1>Which is still the same model?</h1><p>");
    lmq_page_verdict(page, r);
    put_failures(page, models);
    put_subject(page, subject, lmq_report_item(models, 0));
    lmq_page_notes(page, r);
    lmq_page_several(page, r);
    put(page, "<h2>Each by itself</h2>");
    for (size_t i = 0; i < n; i++) {
        const struct lmq_report *m = lmq_report_item(models, i);
        put(page, "<details class=model><summary>%zu&ensp;", i + 1);
        lmq_page_text(page, string(m, "protocol.model.path"));
        put(page, "</summary>");
        lmq_page_model(page, m);
        put(page, "</details>");
    }
}

enum lmq_status
lmq_validate_html(const struct lmq_report *report, char **text,
                  struct lmq_error *err)
{
    struct lmq_buffer page = {0};

    *text = NULL;
    if ((lmq_report_at(report, "models") == NULL &&
         lmq_report_at(report, "kld") == NULL) ||
        lmq_report_at(report, "part") != NULL)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "is no report of lmq_validate()");
    locale_t former = lmq_c_locale_enter();
    if (lmq_report_at(report, "models") != NULL)
        put_several(&page, report);
    else
        put_one(&page, report);
    put(&page, "</html>\n");
    lmq_c_locale_leave(former);
    *text = lmq_buffer_text(&page);
    return *text == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

enum lmq_status
lmq_page_write(char *text, const char *path, int replaces,
               struct lmq_error *err)
{
    enum lmq_status status =
        lmq_output_put(path, text, strlen(text), replaces != 0, NULL, err);

    free(text);
    return status;
}

enum lmq_status
lmq_validate_write_html(const struct lmq_report *report, const char *path,
                        int replaces, struct lmq_error *err)
{
    char *text;
    enum lmq_status status = lmq_validate_html(report, &text, err);

    return status == LMQ_OK ? lmq_page_write(text, path, replaces, err)
                            : status;
}
