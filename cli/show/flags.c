/*
 * flags.c - the library's names of options -> those of the command line.
 */
#include "config.h"

#include <string.h>

#include "cli/command.h"

static const struct {
    const char *member, *flag;
} flags[] = {
    {"against", "--against"},
    {"activations", "--activations"},
    {"baseline", "--baseline"},
    {"calibration", "--calibrate"},
    {"calibration_tokens", "--calibrate-tokens"},
    {"chat_format", "--chat-format"},
    {"config", "--config"},
    {"context", "--ctx"},
    {"damping", "--damping"},
    {"emulations", "--emulate"},
    {"encoding", "--encoding"},
    {"forces_tokenizer", "--force-tokenizer"},
    {"attribution", "--attribute"},
    {"group_size", "--group-size"},
    {"has_attribution", "--attribute"},
    {"has_digests", "--digests"},
    {"has_floor", "--floor"},
    {"has_stats", "--stats"},
    {"has_tensors", "--tensors"},
    {"is_compressed", "--compress"},
    {"kv", "--kv"},
    {"layout", "--layout"},
    {"max_tokens", "--max-tokens"},
    {"memory", "--memory"},
    {"mend", "--mend"},
    {"method", "--method"},
    {"n_parts", "--parts"},
    {"on_nonfinite", "--on-nonfinite"},
    {"part", "--part"},
    {"recipe", "--recipe"},
    {"replaces", "-f (--force)"},
    {"resumes", "--resume"},
    {"rules", "--set"},
    {"scales", "--scales"},
    {"score", "--score"},
    {"shard_size", "--shard-size"},
    {"source", "--source"},
    {"rotates", "--rotate"},
    {"splits_documents", "--split-documents"},
    {"stride", "--stride"},
    {"target_bits", "--target-bits"},
    {"target_kld", "--target-kld"},
    {"target_size", "--target-size"},
    {"texts", "--text"},
    {"task", "--task"},
    {"tensor", "--tensor"},
    {"tie", "--tie"},
    {"to", "--to"},
    {"tokenizer", "--tokenizer"},
    {"tokens", "--tokens"},
    {"type", "--type"},
    {"writes_text", "--own-text"},
};

/* " 'PATTERN=keep'" as the rule that --keep makes is told: where the pattern
 * ends, NULL if it is another rule. */
static const char *
find_kept(const char *text)
{
    return strncmp(text, " '", 2) == 0 ? strstr(text, "=keep'") : NULL;
}

/* The flag of the n letters, NULL if they name no option. */
static const char *
find_flag(const char *member, size_t n)
{
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (strncmp(flags[i].member, member, n) == 0 &&
            flags[i].member[n] == '\0')
            return flags[i].flag;
    return NULL;
}

void
print_flags(FILE *to, const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";

    for (const char *at = text; *at != '\0'; at++) {
        bool is_first = at == text || at[-1] == ' ' || at[-1] == '(';
        size_t n = *at == '.' && is_first ? strspn(at + 1, letters) : 0;
        const char *flag = n == 0 ? NULL : find_flag(at + 1, n);
        if (flag == NULL) {
            putc(*at, to);
            continue;
        }
        const char *kept =
            strcmp(flag, "--set") == 0 ? find_kept(at + n + 1) : NULL;
        fputs(kept == NULL ? flag : "--keep", to);
        at += n;
        while (kept != NULL && at + 1 < kept)
            putc(*++at, to);
        if (kept != NULL)
            at += strlen("=keep");
    }
}
