/*
 * suggest.c - did you mean: the nearest of some words.
 */
#include "config.h"

#include <string.h>

#include "cli/command.h"

#define MAX_WORD 31

static int
smaller(int a, int b)
{
    return a < b ? a : b;
}

/* How many letters to change, put in, take out, or swap with the next one
 * (Damerau and Levenshtein, each place touched once). */
static int
distance(const char *a, const char *b)
{
    int n = (int)strlen(a), m = (int)strlen(b);
    int cost[MAX_WORD + 1][MAX_WORD + 1];

    if (n > MAX_WORD || m > MAX_WORD)
        return n + m;
    for (int i = 0; i <= n; i++)
        for (int j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                cost[i][j] = i + j;
                continue;
            }
            int change = cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            int gap = smaller(cost[i - 1][j], cost[i][j - 1]) + 1;
            cost[i][j] = smaller(change, gap);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                cost[i][j] = smaller(cost[i][j], cost[i - 2][j - 2] + 1);
        }
    return cost[n][m];
}

void
suggest(struct suggestion *suggestion, const char *candidate)
{
    size_t n = strlen(suggestion->wanted);
    int d = distance(suggestion->wanted, candidate);

    /* What was begun and not ended is nearer than any slip. */
    if (n >= 3 && strncmp(suggestion->wanted, candidate, n) == 0)
        d = 0;
    /* A third of the letters may be wrong; one of two. */
    if (d > (int)(n + 1) / 3 + (n == 1))
        return;
    if (suggestion->best == NULL || d < suggestion->distance) {
        suggestion->best = candidate;
        suggestion->distance = d;
    }
}
