/*
 * is_json.c - 0 if standard input is exactly one JSON document; then prints
 * the values at the dotted paths that are named.
 */
#include "config.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const json_t *
find(const json_t *node, const char *path)
{
    while (node != NULL && *path != '\0') {
        char key[256];
        size_t n = strcspn(path, ".");
        snprintf(key, sizeof(key), "%.*s", (int)n, path);
        if (json_is_array(node))
            node = json_array_get(node, (size_t)(key[0] - '0'));
        else
            node = json_object_get(node, key);
        path += n + (path[n] == '.');
    }
    return node;
}

int
main(int argc, char **argv)
{
    json_error_t err;
    json_t *json = json_loadf(stdin, JSON_REJECT_DUPLICATES, &err);

    if (json == NULL) {
        fprintf(stderr, "is_json: %s (line %d)\n", err.text, err.line);
        return 1;
    }
    for (int i = 1; i < argc; i++) {
        const json_t *value = find(json, argv[i]);
        if (value == NULL) {
            fprintf(stderr, "is_json: nothing at %s\n", argv[i]);
            json_decref(json);
            return 1;
        }
        if (json_is_string(value))
            puts(json_string_value(value));
        else {
            json_dumpf(value, stdout, JSON_ENCODE_ANY);
            putchar('\n');
        }
    }
    json_decref(json);
    return 0;
}
