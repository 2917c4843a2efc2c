/*
 * cmd_tokenize.c - lmquant tokenize.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

static const struct option options[] = {
    {0, "ids", NULL, "only the ids, on one line"},
    {0, "json", NULL, "ids and pieces as JSON"},
    {0, "yaml", NULL, "the same as YAML"},
    {'d', "decode", NULL, "the other way: ids to text"},
    {0, "no-bos", NULL, "without the token that begins a text"},
    {0, "special", NULL, "special tokens in the text count as such"},
    {0, NULL, NULL, NULL},
};

/* ---- Input ---- */

#define SEPARATORS " \t\r\n,[]"

/* Whole numbers between them. */
static int32_t *
parse_ids(const char *text, size_t size, size_t *n, int *code)
{
    const char *const last = text + size;
    int32_t *ids = malloc((size / 2 + 1) * sizeof(*ids));

    *n = 0;
    *code = EXIT_SYSTEM;
    if (ids == NULL)
        print_error("out of memory");
    while (ids != NULL && text < last) {
        char *end;
        if (*text != '\0' && strchr(SEPARATORS, *text) != NULL) {
            text++;
            continue;
        }
        errno = 0;
        long id = strtol(text, &end, 10);
        if (*text < '0' || *text > '9' || errno != 0 || id > INT32_MAX ||
            (*end != '\0' && strchr(SEPARATORS, *end) == NULL)) {
            print_error("'%.*s' is no token id",
                        (int)strcspn(text, " \t\r\n"), text);
            free(ids);
            *code = EXIT_INPUT;
            return NULL;
        }
        ids[(*n)++] = (int32_t)id;
        text = end;
    }
    return ids;
}

/* ---- Output ---- */

static void
print_ids(const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        printf("%s%" PRId32, i == 0 ? "" : " ", ids[i]);
    putchar('\n');
}

/* Characters of two or three bytes that a terminal obeys, or that YAML takes
 * for the end of a line or for no character: C1 controls, the separators of
 * lines and paragraphs, the byte order mark, U+FFFE and U+FFFF. 0: another. */
static unsigned
awkward_character(const unsigned char *p, size_t n, size_t *length)
{
    unsigned c = 0;

    *length = n >= 2 && p[0] == 0xc2 ? 2 : n >= 3 && p[0] >= 0xe0 ? 3 : 0;
    if (*length == 2)
        c = p[1] & 0x3fu;
    if (*length == 3)
        c = (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    if (*length == 2 && c < 0x20)
        return 0x80 + c;
    return *length == 3 && p[0] < 0xf0 &&
                   (c == 0x2028 || c == 0x2029 || c == 0xfeff || c >= 0xfffe)
               ? c
               : 0;
}

/* As JSON, YAML and C do, so that a line break stays on its line. A piece that
 * is a part of a character shows as <0xNN>, as vocabularies write it. */
static void
print_quoted(const char *text, size_t n, bool is_text)
{
    putchar('"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        size_t length;
        unsigned awkward = awkward_character(
            (const unsigned char *)text + i, n - i, &length);
        if (!is_text)
            printf("<0x%02X>", c);
        else if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c == '\n')
            fputs("\\n", stdout);
        else if (c < 0x20 || c == 0x7f)
            printf("\\u%04x", c);
        else if (awkward != 0)
            printf("\\u%04x", awkward);
        else
            putchar(c);
        if (is_text && awkward != 0)
            i += length - 1;
    }
    putchar('"');
}

enum form { FORM_TEXT, FORM_JSON, FORM_YAML };

/* A list is written as it comes, whatever its length. */
static int
print_pieces(const struct lmq_tokenizer *tokenizer, const int32_t *ids,
             size_t n, enum form form, struct lmq_error *err)
{
    static const char *const begin[] = {"", "{\"tokens\": [", "tokens:"};

    fputs(begin[form], stdout);
    for (size_t i = 0; i < n; i++) {
        const char *piece;
        size_t size;
        int is_text;
        if (lmq_tokenizer_token(tokenizer, ids[i], &piece, &size, &is_text,
                                err) != LMQ_OK)
            return report_error(err);
        if (form == FORM_TEXT)
            printf("%8" PRId32 "  ", ids[i]);
        else if (form == FORM_JSON)
            printf("%s\n  {\"id\": %" PRId32 ", \"piece\": ",
                   i == 0 ? "" : ",", ids[i]);
        else
            printf("\n- {id: %" PRId32 ", piece: ", ids[i]);
        print_quoted(piece, size, is_text != 0);
        fputs(form == FORM_TEXT ? "\n" : "}", stdout);
    }
    if (form == FORM_JSON)
        printf("\n], \"count\": %zu}\n", n);
    if (form == FORM_YAML)
        printf("%s\ncount: %zu\n", n == 0 ? " []" : "", n);
    return EXIT_DONE;
}

/* ---- The command ---- */

static int
encode(const struct arguments *arguments,
       const struct lmq_tokenizer *tokenizer, const char *text, size_t n,
       struct lmq_error *err)
{
    unsigned flags = 0;
    int32_t *ids;
    size_t n_ids;
    int code = EXIT_DONE;

    if (has_option(arguments, "no-bos"))
        flags |= LMQ_TEXT_PLAIN;
    if (has_option(arguments, "special"))
        flags |= LMQ_TEXT_SPECIAL;
    if (lmq_tokenize(tokenizer, text, n, flags, &ids, &n_ids, err) != LMQ_OK)
        return report_error(err);
    enum form form = has_option(arguments, "json")   ? FORM_JSON
                     : has_option(arguments, "yaml") ? FORM_YAML
                                                     : FORM_TEXT;
    if (has_option(arguments, "ids"))
        print_ids(ids, n_ids);
    else
        code = print_pieces(tokenizer, ids, n_ids, form, err);
    lmq_tokens_free(ids);
    return code;
}

static int
decode(const struct arguments *arguments,
       const struct lmq_tokenizer *tokenizer, const char *input, size_t size,
       struct lmq_error *err)
{
    unsigned flags = has_option(arguments, "special") ? LMQ_TEXT_SPECIAL : 0;
    size_t n_ids, n_text;
    char *text;
    int code;
    int32_t *ids = parse_ids(input, size, &n_ids, &code);

    if (ids == NULL)
        return code;
    enum lmq_status status =
        lmq_detokenize(tokenizer, ids, n_ids, flags, &text, &n_text, err);
    free(ids);
    if (status != LMQ_OK) {
        report_error(err);
        return status == LMQ_ERR_ARG ? EXIT_INPUT : EXIT_SYSTEM;
    }
    fwrite(text, 1, n_text, stdout);
    lmq_text_free(text);
    return EXIT_DONE;
}

static int
run(const struct arguments *arguments)
{
    struct lmq_open_options open;
    struct lmq_tokenizer *tokenizer;
    struct lmq_error err;
    size_t n;

    if (!open_options(arguments, &open))
        return EXIT_USAGE;
    if (wants_data(arguments) + has_option(arguments, "ids") +
            has_option(arguments, "decode") >
        1)
        return usage_error(arguments->command,
                           "--json or --yaml, --ids and --decode exclude each "
                           "other");
    if (has_option(arguments, "decode") && has_option(arguments, "no-bos"))
        return usage_error(arguments->command,
                           "--no-bos does not go with --decode");
    if (lmq_tokenizer_from_path(arguments->operands[0], &open, &tokenizer,
                                &err) != LMQ_OK)
        return report_error(&err);
    int code;
    char *text = read_text(
        arguments->n_operands > 1 ? arguments->operands[1] : NULL, &n, &code);
    if (text != NULL)
        code = has_option(arguments, "decode")
                   ? decode(arguments, tokenizer, text, n, &err)
                   : encode(arguments, tokenizer, text, n, &err);
    free(text);
    lmq_tokenizer_close(tokenizer);
    return code;
}

const struct command command_tokenize = {
    .name = "tokenize",
    .summary = "turn text into token ids, or back",
    .operands = "CHECKPOINT-OR-TOKENIZER [FILE]",
    .about = "Reads text from FILE, or from standard input without it or if "
             "it is '-', and\nshows its tokens, each with its piece of text. "
             "Takes any checkpoint with a\ntokenizer, or a tokenizer's file "
             "alone.",
    .least = 1,
    .most = 2,
    .texts = 1,
    .common = COMMON_OPEN,
    .only_reads = true,
    .options = options,
    .run = run,
};
