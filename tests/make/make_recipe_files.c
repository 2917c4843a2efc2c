/*
 * make_recipe_files.c - recipes, good and bad, for convert --recipe.
 */
#include "config.h"

#include <stdio.h>

#include "tests/make/make_files.h"

#define HEAD "version: 1\nrules:\n"
#define RULE "- match: '*'\n  encoding: q8\n"

static const struct {
    const char *name, *text, *sentence;
} recipes[] = {
    {"good-all.yaml",
     "# Everything that a recipe can say.\nversion: 1\n"
     "default: {encoding: q8, group: 64, scales: f16, method: search}\n"
     "rules:\n- match: ['blk.*', \"*\"]\n  layers: [0-2, 'last 1']\n"
     "  group: 32\n  scales: f32\n  method: absmax\n"
     "- match: ffn_[!n]*\n  experts: 0-\n  encoding: keep\n"
     "  optional: true\n"
     "- match: model.embed_tokens\n  encoding: bf16\n",
     "everything that a recipe can say."},
    {"good-json.yaml",
     "{\"version\": 1, \"rules\": [{\"match\": [\"*\"], \"group\": 128}]}\n",
     "a recipe as JSON."},
    {"good-no-rules.yaml", "version: 1\nrules: []\n", "no rules."},
    {"bad-empty.yaml", "", "zero bytes."},
    {"bad-comment.yaml", "# nothing\n", "nothing but a remark."},
    {"bad-text.yaml", "Once upon a time there was no recipe.\n", "a text."},
    {"bad-no-version.yaml", "rules: []\n", "no version."},
    {"bad-version.yaml", "version: 2\n", "a version to come."},
    {"bad-key.yaml", HEAD RULE "  bits: 4\n", "a key that there is not."},
    {"bad-key-twice.yaml", HEAD RULE "  encoding: bf16\n",
     "a key stands twice."},
    {"bad-encoding.yaml", HEAD "- match: '*'\n  encoding: q9\n",
     "an encoding that there is not."},
    {"bad-group.yaml", HEAD RULE "  group: 48\n", "a group of 48."},
    {"bad-group-huge.yaml", HEAD RULE "  group: 18446744073709551680\n",
     "a group of 2^64 + 64 [12]."},
    {"bad-group-of-floats.yaml",
     HEAD "- match: '*'\n  encoding: bf16\n  group: 32\n",
     "groups of floats."},
    {"bad-layers.yaml", HEAD RULE "  layers: 3-1\n", "layers backwards."},
    {"bad-layers-huge.yaml", HEAD RULE "  layers: 0-4294967296\n",
     "a layer of 2^32 [12]."},
    {"bad-experts.yaml", HEAD RULE "  experts: all\n", "experts in words."},
    {"bad-no-match.yaml", HEAD "- encoding: q8\n",
     "a rule that matches nothing."},
    {"bad-says-nothing.yaml", HEAD "- match: '*'\n",
     "a rule that says nothing."},
    {"bad-unused.yaml", HEAD "- match: ffn_dwon\n  encoding: q8\n",
     "a name that no matrix has."},
    {"bad-set.yaml", HEAD "- match: 'blk.[0'\n  encoding: q8\n",
     "a set without its end [1]."},
    {"bad-empty-pattern.yaml", HEAD "- match: ''\n  encoding: q8\n",
     "an empty pattern."},
    {"bad-empty-list.yaml", HEAD "- match: []\n  encoding: q8\n",
     "no pattern at all."},
    {"bad-optional.yaml", HEAD RULE "  optional: maybe\n",
     "neither true nor false."},
    {"bad-default.yaml", "version: 1\ndefault: q8\n",
     "a word for a list of keys."},
    {"bad-rules.yaml", "version: 1\nrules: {match: q8}\n",
     "keys for a list of rules."},
    {"bad-alias.yaml", HEAD "- match: *x\n  encoding: q8\n", "an alias."},
    {"bad-anchor.yaml", HEAD "- &x\n  match: '*'\n  encoding: q8\n",
     "an anchor."},
    {"bad-laughs.yaml",
     "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
     "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\n"
     "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\n",
     "aliases of aliases: 3 million words [9]."},
    {"bad-laughing-rules.yaml",
     "version: 1\nrules: &a [[x,x,x],[x,x,x]]\ndefault: *a\n",
     "the same, where lists may stand [9]."},
    {"bad-merge.yaml", HEAD "- {<<: {match: x}, encoding: q8}\n",
     "a key that merges."},
    {"bad-tag.yaml", HEAD "- match: !!python/name:os.system x\n",
     "a tag [22]."},
    {"bad-two-documents.yaml", HEAD RULE "---\n" HEAD RULE,
     "two documents."},
    {"bad-deep-match.yaml", HEAD "- match: [[['*']]]\n  encoding: q8\n",
     "lists in a list [10]."},
    {"bad-open-quote.yaml", HEAD "- match: \"ffn\n", "a text without end [1]."},
    {"bad-tab.yaml", "version: 1\nrules:\n\t- match: x\n", "a tab."},
    {"bad-nul.yaml", HEAD "- match: \"a\\0b\"\n  encoding: q8\n",
     "a zero in a name."},
    {"bad-escapes.yaml", HEAD "- match: \"\\e[31m\"\n  encoding: q8\n",
     "terminal escapes [20]."},
    {"bad-key-escapes.yaml", "version: 1\n\"\\e[2J\": 2\n",
     "terminal escapes in a key [20]."},
    {"bad-utf8.yaml", "version: 1\nrules:\n- match: \xff\xfe\n",
     "bytes that are no UTF-8."},
    {"bad-surrogate.yaml", HEAD "- match: \"\\ud800\"\n  encoding: q8\n",
     "half of a surrogate pair."},
};

static void
repeat(const char *name, const char *head, const char *part, size_t n,
       const char *sentence)
{
    struct bytes bytes = {0};

    put_text(&bytes, head);
    for (size_t i = 0; i < n; i++)
        put_text(&bytes, part);
    emit(name, &bytes, sentence);
}

void
make_recipes(void)
{
    char name[64];

    make_folder("recipes", "what convert --recipe takes and refuses:");
    for (size_t i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++) {
        snprintf(name, sizeof(name), "recipes/%s", recipes[i].name);
        emit_text(name, recipes[i].text, recipes[i].sentence);
    }
    repeat("recipes/bad-deep.yaml", "", "[", 8000, "8000 open lists [10].");
    repeat("recipes/bad-deep-keys.yaml", "", "{a: ", 4000,
           "4000 keys in each other [10].");
    repeat("recipes/bad-deep-rules.yaml", HEAD, "- ", 4000,
           "4000 lists in each other [10].");
    repeat("recipes/bad-long-pattern.yaml", HEAD "- encoding: q8\n  match: ",
           "*?", 520, "a pattern of 1040 bytes.");
    repeat("recipes/bad-many-ranges.yaml", HEAD RULE "  layers: 0", ",0", 1024,
           "1025 ranges.");
}
