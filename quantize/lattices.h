/*
 * lattices.h - the lattices of the IQ types of GGUF: points that stand for the
 * magnitudes of several elements at once.
 */
#ifndef LMQ_QUANTIZE_LATTICES_H
#define LMQ_QUANTIZE_LATTICES_H

#include <stdint.h>

struct lmq_lattice {
    const char *points; /* two characters each (lattices.c) */
    unsigned n;         /* elements of a point: 8, of three values each, or 4,
                           of eight */
    int8_t values[8];
};

extern const struct lmq_lattice lmq_lattice_iq1_s, lmq_lattice_iq2_xxs,
    lmq_lattice_iq2_xs, lmq_lattice_iq2_s, lmq_lattice_iq3_xxs,
    lmq_lattice_iq3_s;

/* Point number `index`, which must be one of the lattice's: n elements. */
void lmq_lattice_point(const struct lmq_lattice *lattice, unsigned index,
                       int8_t *q);

#endif
