/*
 * grid.c - areas of a stored matrix of small numbers, as floats.
 *
 * Only the words that an area needs are read: of each line of the file one
 * strip, or all lines at once where the strips touch.
 *
 * Packings differ in four ways, which the grid says: the bits of a number, the
 * words that it stands in, whether numbers follow each other along rows or
 * down columns, and whether the file has words of one run side by side or in
 * line after line. From these and an area follows a window of words; taking
 * numbers out of it is one loop for all.
 */
#include "config.h"

#include "formats/packed/grid.h"

#include <math.h>

#include "base/bytes.h"
#include "base/size.h"

/* The words of an area, and the numbers in them. */
struct window {
    uint64_t line, word; /* the first */
    size_t n_lines, n_words;
    size_t word_size;
    bool is_along_rows;    /* runs go along rows of the matrix */
    uint64_t first;        /* number of a run */
    uint64_t first_word;   /* of a run */
    size_t n_numbers, n_runs;
};

/* Bits of the words that numbers stand in. */
static unsigned
word_bits(const struct lmq_grid *grid)
{
    return 8 * (unsigned)lmq_dtype_size(grid->dtype);
}

/* A run is a sequence of numbers that share words. Numbers of 3 bits cross
 * words, so that a window of runs is widened to whole words at both ends. */
static void
find_window(const struct lmq_grid *grid, const struct lmq_area *area,
            struct window *w)
{
    uint64_t first_run, end;

    w->is_along_rows = grid->is_turned == grid->is_stacked;
    w->first = w->is_along_rows ? area->column : area->row;
    w->n_numbers = w->is_along_rows ? area->n_cols : area->n_rows;
    first_run = w->is_along_rows ? area->row : area->column;
    w->n_runs = w->is_along_rows ? area->n_rows : area->n_cols;
    w->word_size = lmq_dtype_size(grid->dtype);
    w->first_word = w->first;
    end = w->first + w->n_numbers;
    if (grid->bits != 0) {
        w->first_word = w->first * grid->bits / word_bits(grid);
        end = lmq_u64_ceil_div(end * grid->bits, word_bits(grid));
    }
    w->line = grid->is_stacked ? w->first_word : first_run;
    w->word = grid->is_stacked ? first_run : w->first_word;
    w->n_lines = grid->is_stacked ? (size_t)(end - w->first_word) : w->n_runs;
    w->n_words = grid->is_stacked ? w->n_runs : (size_t)(end - w->first_word);
}

/* What lmq_grid_read() needs room for; false if that does not fit. */
bool
lmq_grid_raw_size(const struct lmq_grid *grid, const struct lmq_area *area,
                  size_t *size)
{
    struct window w;

    find_window(grid, area, &w);
    return lmq_size_mul(w.n_lines, w.n_words, size) &&
           lmq_size_mul(*size, w.word_size, size);
}

/* Lines that touch are one read. */
static enum lmq_status
read_words(struct lmq_checkpoint *checkpoint, const struct lmq_grid *grid,
           const struct window *w, unsigned char *raw, struct lmq_error *err)
{
    struct lmq_input *file = checkpoint->files[grid->file];
    size_t strip = w->n_words * w->word_size, n_lines = w->n_lines;
    uint64_t pitch = grid->n_words * w->word_size;
    uint64_t at = grid->offset + w->line * pitch + w->word * w->word_size;
    enum lmq_status status = LMQ_OK;

    if (strip == pitch) {
        strip *= n_lines;
        n_lines = 1;
    }
    for (size_t i = 0; i < n_lines && status == LMQ_OK; i++)
        status = lmq_input_read(file, at + i * pitch, raw + i * strip, strip,
                                err);
    return status;
}

/* ---- Numbers ---- */

/* A word is a number. */
static void
convert_words(const struct lmq_grid *grid, const struct window *w,
              const unsigned char *raw, size_t number_step, size_t run_step,
              float *values)
{
    size_t line_step = grid->is_stacked ? number_step : run_step;
    size_t word_step = grid->is_stacked ? run_step : number_step;
    float part[256];

    for (size_t line = 0; line < w->n_lines; line++)
        for (size_t i = 0; i < w->n_words; i += sizeof(part) / sizeof(*part)) {
            size_t n = lmq_size_min(w->n_words - i,
                                    sizeof(part) / sizeof(*part));
            float *to = values + line * line_step + i * word_step;
            lmq_dtype_to_f32(grid->dtype, raw, part, n);
            raw += n * w->word_size;
            for (size_t j = 0; j < n; j++)
                to[j * word_step] = part[j];
        }
}

/* Bytes, or words of 32 bits, to which some schemes add a number as a
 * whole. */
static uint32_t
load_word(const struct lmq_grid *grid, const unsigned char *at)
{
    return grid->dtype == LMQ_DTYPE_U8
               ? *at
               : lmq_load_u32le(at) + grid->word_plus;
}

/* Numbers of a few bits. Of all runs the same ones stand at the same bits. */
static void
take_apart(const struct lmq_grid *grid, const struct window *w,
           const unsigned char *raw, size_t number_step, size_t run_step,
           float *values)
{
    size_t line_bytes = w->n_words * w->word_size;
    size_t next_word = grid->is_stacked ? line_bytes : w->word_size;
    size_t next_run = grid->is_stacked ? w->word_size : line_bytes;
    unsigned width = word_bits(grid), bits = grid->bits;
    uint32_t mask = (1u << bits) - 1;

    for (size_t i = 0; i < w->n_numbers; i++) {
        uint64_t number = w->first + i;
        if (grid->order != NULL)
            number = number / 8 * 8 + grid->order[number % 8];
        uint64_t bit = number * bits - w->first_word * width;
        const unsigned char *at = raw + bit / width * next_word;
        unsigned shift = (unsigned)(bit % width);
        bool is_divided = shift + bits > width;
        for (size_t run = 0; run < w->n_runs; run++, at += next_run) {
            uint32_t code = load_word(grid, at) >> shift;
            if (is_divided)
                code |= load_word(grid, at + next_word) << (width - shift);
            code = ((code & mask) + grid->number_plus) & mask;
            values[i * number_step + run * run_step] =
                grid->levels != NULL
                    ? grid->levels[code]
                    : (float)((int32_t)code - grid->minus);
        }
    }
}

/* What is left to do with numbers that are words. */
static void
give_meaning(const struct lmq_grid *grid, float *values, size_t n)
{
    for (size_t i = 0; i < n && grid->is_exponent; i++)
        values[i] = values[i] < 255 ? ldexpf(1, (int)values[i] - 127) : NAN;
    for (size_t i = 0; i < n && grid->minus != 0; i++)
        values[i] -= (float)grid->minus;
}

enum lmq_status
lmq_grid_read(struct lmq_checkpoint *checkpoint, const struct lmq_grid *grid,
              const struct lmq_area *area, unsigned char *raw, float *values,
              struct lmq_error *err)
{
    struct window w;

    find_window(grid, area, &w);
    size_t number_step = w.is_along_rows ? 1 : area->n_cols;
    size_t run_step = w.is_along_rows ? area->n_cols : 1;
    enum lmq_status status = read_words(checkpoint, grid, &w, raw, err);
    if (status != LMQ_OK || values == NULL)
        return status;
    if (grid->bits != 0) {
        take_apart(grid, &w, raw, number_step, run_step, values);
    } else {
        convert_words(grid, &w, raw, number_step, run_step, values);
        give_meaning(grid, values, area->n_rows * area->n_cols);
    }
    return LMQ_OK;
}
