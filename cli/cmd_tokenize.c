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
    {'d', "decode", NULL, "the other way: ids from standard input to text"},
    {0, "no-bos", NULL, "without the token that begins a text"},
    {0, "special", NULL, "special tokens in the text count as such"},
    {0, NULL, NULL, NULL},
};

/* ---- Input ---- */

static char *
read_all(size_t *n)
{
    size_t capacity = 1 << 16;
    char *text = malloc(capacity);

    *n = 0;
    while (text != NULL) {
        *n += fread(text + *n, 1, capacity - *n, stdin);
        if (*n < capacity)
            break;
        char *grown = realloc(text, capacity *= 2);
        if (grown == NULL)
            free(text);
        text = grown;
    }
    if (text == NULL || ferror(stdin)) {
        perror("lmquant: standard input");
        free(text);
        return NULL;
    }
    text[*n] = '\0';
    return text;
}

/* Whole numbers between anything that is none. */
static int32_t *
parse_ids(const char *text, size_t *n)
{
    int32_t *ids = malloc((strlen(text) / 2 + 1) * sizeof(*ids));

    *n = 0;
    while (ids != NULL && *text != '\0') {
        char *end;
        errno = 0;
        long id = strtol(text, &end, 10);
        if (end == text && strchr(" \t\r\n,[]", *text) != NULL) {
            text++;
            continue;
        }
        if (end == text || errno != 0 || id < 0 || id > INT32_MAX) {
            fprintf(stderr, "lmquant: '%.*s' is no token id\n",
                    (int)strcspn(text, " \t\r\n"), text);
            free(ids);
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

/* As JSON and C do, so that a line break stays on its line. A piece that is
 * a part of a character shows as <0xNN>, as vocabularies write it. */
static void
print_quoted(const char *text, size_t n, bool is_text)
{
    putchar('"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (!is_text)
            printf("<0x%02X>", c);
        else if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c == '\n')
            fputs("\\n", stdout);
        else if (c < 0x20 || c == 0x7f)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static int
print_pieces(const struct lmq_tokenizer *tokenizer, const int32_t *ids,
             size_t n, bool is_json, struct lmq_error *err)
{
    if (is_json)
        fputs("{\"tokens\": [", stdout);
    for (size_t i = 0; i < n; i++) {
        const char *piece;
        size_t size;
        int is_text;
        if (lmq_tokenizer_token(tokenizer, ids[i], &piece, &size, &is_text,
                                err) != LMQ_OK)
            return report_error(err);
        if (is_json)
            printf("%s\n  {\"id\": %" PRId32 ", \"piece\": ",
                   i == 0 ? "" : ",", ids[i]);
        else
            printf("%8" PRId32 "  ", ids[i]);
        print_quoted(piece, size, is_text != 0);
        fputs(is_json ? "}" : "\n", stdout);
    }
    if (is_json)
        printf("\n], \"count\": %zu}\n", n);
    return EXIT_DONE;
}

/* ---- The command ---- */

static int
encode(const struct arguments *arguments,
       const struct lmq_tokenizer *tokenizer, const char *text, size_t n,
       struct lmq_error *err)
{
    unsigned flags = (has_option(arguments, "no-bos") ? LMQ_TEXT_PLAIN : 0) |
                     (has_option(arguments, "special") ? LMQ_TEXT_SPECIAL : 0);
    int32_t *ids;
    size_t n_ids;
    int code = EXIT_DONE;

    if (lmq_tokenize(tokenizer, text, n, flags, &ids, &n_ids, err) != LMQ_OK)
        return report_error(err);
    if (has_option(arguments, "ids"))
        print_ids(ids, n_ids);
    else
        code = print_pieces(tokenizer, ids, n_ids,
                            has_option(arguments, "json"), err);
    lmq_tokens_free(ids);
    return code;
}

static int
decode(const struct arguments *arguments,
       const struct lmq_tokenizer *tokenizer, const char *input,
       struct lmq_error *err)
{
    unsigned flags = has_option(arguments, "special") ? LMQ_TEXT_SPECIAL : 0;
    size_t n_ids, n_text;
    char *text;
    int32_t *ids = parse_ids(input, &n_ids);

    if (ids == NULL)
        return EXIT_INPUT;
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
    if (has_option(arguments, "json") + has_option(arguments, "ids") +
            has_option(arguments, "decode") >
        1)
        return usage_error(arguments->command,
                           "--json, --ids and --decode exclude each other");
    if (lmq_tokenizer_from_path(arguments->operands[0], &open, &tokenizer,
                                &err) != LMQ_OK)
        return report_error(&err);
    char *text = read_all(&n);
    int code = EXIT_SYSTEM;
    if (text != NULL)
        code = has_option(arguments, "decode")
                   ? decode(arguments, tokenizer, text, &err)
                   : encode(arguments, tokenizer, text, n, &err);
    free(text);
    lmq_tokenizer_close(tokenizer);
    return code;
}

const struct command command_tokenize = {
    .name = "tokenize",
    .summary = "turn text into token ids, or back",
    .operands = "CHECKPOINT-OR-TOKENIZER",
    .about = "Reads text from standard input and shows its tokens, each with "
             "its piece of\ntext. Takes any checkpoint with a tokenizer, or a "
             "tokenizer's file alone.",
    .least = 1,
    .most = 1,
    .common = COMMON_OPEN,
    .options = options,
    .run = run,
};
