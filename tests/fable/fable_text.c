/*
 * fable_text.c - prints little fables from a grammar, for training a model.
 *
 *     fable_text SEED N_STORIES > stories.txt
 *
 * Stories are separated by blank lines. The same seed gives the same bytes on
 * every machine. This file is the machine that expands templates; the words,
 * the phrases and the plots are in fable_plots.h, in this language:
 *
 *     [a|b|c]       one of the alternatives, each equally likely
 *     {name}        the value bound to a slot, or else the rule of that name
 *     {a,b=rule}    expands the rule once, cuts it at '/', binds the parts and
 *                   prints nothing; no part repeats a value bound before
 *     {h*rule}      casts a character: binds h (a name) and h.k (a kind, from
 *                   the rule), h.he, h.him, h.his
 *     @             "a" or "an", as the next word wants it
 *     ^             makes the next letter a capital
 *     `             a double quote
 *
 * A slot keeps its value through the story. That is the point of it: what was
 * lost is what is found, and the model has to look back to know.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "fable_plots.h"

#define N_SLOTS_MAX 64
#define KEY_MAX 16
#define VALUE_MAX 128
#define STORY_MAX 8192
#define N_TRIES 1000

struct slot {
    char key[KEY_MAX];
    char value[VALUE_MAX];
};

struct story {
    uint64_t rng;
    struct slot slots[N_SLOTS_MAX];
    size_t n_slots;
};

struct buf {
    char *data;
    size_t len, cap;
};

static void
die(const char *what, const char *where)
{
    fprintf(stderr, "fable_text: %s: %.60s\n", what, where);
    exit(1);
}

/* ---- Chance ---- */

static size_t
random_below(uint64_t *state, size_t n)
{
    return (size_t)(((lmq_random_next(state) >> 32) * n) >> 32);
}

/* ---- Slots ---- */

static void
put(struct buf *out, const char *text, size_t len)
{
    if (len >= out->cap - out->len)
        die("text is too long", text);
    memcpy(out->data + out->len, text, len);
    out->len += len;
    out->data[out->len] = '\0';
}

static void
copy(char *to, size_t cap, const char *text)
{
    struct buf out = { to, 0, cap };
    put(&out, text, strlen(text));
}

/* The latest of that name, so that a plot may bind a slot anew. */
static const char *
slot_value(const struct story *st, const char *key)
{
    for (size_t i = st->n_slots; i > 0; i--)
        if (strcmp(st->slots[i - 1].key, key) == 0)
            return st->slots[i - 1].value;
    return NULL;
}

static int
is_taken(const struct story *st, const char *value)
{
    for (size_t i = 0; i < st->n_slots; i++)
        if (strcmp(st->slots[i].value, value) == 0)
            return 1;
    return 0;
}

static void
bind(struct story *st, const char *key, const char *suffix, const char *value)
{
    if (st->n_slots == N_SLOTS_MAX)
        die("too many slots", key);
    struct slot *s = &st->slots[st->n_slots++];
    copy(s->key, sizeof(s->key), key);
    copy(s->key + strlen(key), sizeof(s->key) - strlen(key), suffix);
    copy(s->value, sizeof(s->value), value);
}

static const char *
rule_text(const char *name)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (strcmp(rules[i].name, name) == 0)
            return rules[i].text;
    die("no such slot or rule", name);
    return NULL;
}

/* ---- Expansion ---- */

static void expand(struct story *st, const char *t, const char *end,
                   struct buf *out);

static void
expand_rule(struct story *st, const char *name, struct buf *out)
{
    const char *text = rule_text(name);
    expand(st, text, text + strlen(text), out);
}

/* Binds one slot for each part of the rule, all of them new to the story. */
static void
bind_rule(struct story *st, const char *keys, const char *rule)
{
    for (int n = 0; n < N_TRIES; n++) {
        char text[4 * VALUE_MAX];
        struct buf out = { text, 0, sizeof(text) };
        size_t n_slots = st->n_slots;
        int is_new = 1;

        expand_rule(st, rule, &out);
        const char *key = keys;
        char *part = text;
        for (;;) {
            char name[KEY_MAX];
            size_t key_len = strcspn(key, ",");
            size_t part_len = strcspn(part, "/");
            if (key_len >= sizeof(name))
                die("slot name is too long", key);
            memcpy(name, key, key_len);
            name[key_len] = '\0';
            int is_last = part[part_len] == '\0';
            if (is_last != (key[key_len] == '\0'))
                die("rule and slots do not match", rule);
            part[part_len] = '\0';
            if (is_taken(st, part))
                is_new = 0;
            bind(st, name, "", part);
            if (is_last)
                break;
            key += key_len + 1;
            part += part_len + 1;
        }
        if (is_new)
            return;
        st->n_slots = n_slots;
    }
    die("nothing new is left", rule);
}

static void
cast(struct story *st, const char *key, const char *rule)
{
    char kind_key[KEY_MAX];
    int is_she = (int)random_below(&st->rng, 2);

    bind_rule(st, key, is_she ? "she_name" : "he_name");
    copy(kind_key, sizeof(kind_key) - 2, key);
    strcat(kind_key, ".k");
    bind_rule(st, kind_key, rule);
    bind(st, key, ".he", is_she ? "she" : "he");
    bind(st, key, ".him", is_she ? "her" : "him");
    bind(st, key, ".his", is_she ? "her" : "his");
}

/* What stands between braces. */
static void
expand_braces(struct story *st, const char *t, size_t len, struct buf *out)
{
    char text[64];

    if (len >= sizeof(text))
        die("too long between braces", t);
    memcpy(text, t, len);
    text[len] = '\0';
    char *op = strpbrk(text, "=*");
    if (op == NULL) {
        const char *value = slot_value(st, text);
        if (value != NULL)
            put(out, value, strlen(value));
        else
            expand_rule(st, text, out);
        return;
    }
    int is_cast = *op == '*';
    *op = '\0';
    if (is_cast)
        cast(st, text, op + 1);
    else
        bind_rule(st, text, op + 1);
}

/*
 * Walks the alternatives of the bracket at t, up to its closing bracket, which
 * is returned. Counts them; if `wanted` is one of them, tells where it lies.
 */
static const char *
scan_choice(const char *t, const char *end, size_t wanted, size_t *n,
            const char **from, const char **to)
{
    const char *start = t + 1;
    int depth = 0;

    *n = 0;
    for (; t < end; t++) {
        if (*t == '[')
            depth++;
        if (*t == ']')
            depth--;
        if ((*t == '|' && depth == 1) || (*t == ']' && depth == 0)) {
            if (*n == wanted) {
                *from = start;
                *to = t;
            }
            (*n)++;
            start = t + 1;
        }
        if (depth == 0)
            return t;
    }
    die("bracket is not closed", start);
    return NULL;
}

static void
expand(struct story *st, const char *t, const char *end, struct buf *out)
{
    for (; t < end; t++) {
        if (*t == '[') {
            const char *from = t, *to = t;
            size_t n;
            scan_choice(t, end, SIZE_MAX, &n, &from, &to);
            t = scan_choice(t, end, random_below(&st->rng, n), &n, &from, &to);
            expand(st, from, to, out);
        } else if (*t == '{') {
            size_t len = strcspn(t, "}") - 1;
            expand_braces(st, t + 1, len, out);
            t += len + 1;
        } else {
            put(out, t, 1);
        }
    }
}

/* ---- Finish ---- */

static int
wants_an(const char *word)
{
    return strchr("aeiou", *word) != NULL || strncmp(word, "hon", 3) == 0;
}

/*
 * Resolves the marks that depend on what follows them, @ ^ `, and drops the
 * spaces that empty alternatives have left over.
 */
static void
print_story(const char *s)
{
    int is_capital = 0;

    for (; *s != '\0'; s++) {
        if (*s == ' ' && strchr(" .\n", s[1]) != NULL)
            continue;
        if (*s == '^') {
            is_capital = 1;
        } else if (*s == '@') {
            putchar(is_capital ? 'A' : 'a');
            is_capital = 0;
            if (s[1] == ' ' && wants_an(s + 2))
                putchar('n');
        } else if (*s == '`') {
            putchar('"');
        } else {
            int is_lower = *s >= 'a' && *s <= 'z';
            putchar(is_capital && is_lower ? *s - 'a' + 'A' : *s);
            is_capital = 0;
        }
    }
    putchar('\n');
}

int
main(int argc, char **argv)
{
    static struct story st;
    static char text[STORY_MAX];

    if (argc != 3) {
        fprintf(stderr, "usage: fable_text SEED N_STORIES\n");
        return 2;
    }
    st.rng = strtoull(argv[1], NULL, 10);
    unsigned long n_stories = strtoul(argv[2], NULL, 10);
    for (unsigned long i = 0; i < n_stories; i++) {
        struct buf out = { text, 0, sizeof(text) };
        st.n_slots = 0;
        const char *plot = plots[random_below(
            &st.rng, sizeof(plots) / sizeof(plots[0]))];
        expand(&st, plot, plot + strlen(plot), &out);
        if (i > 0)
            putchar('\n');
        print_story(text);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("fable_text: standard output");
        return 1;
    }
    return 0;
}
