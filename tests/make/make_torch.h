/*
 * make_torch.h - the part of the corpus that is of PyTorch.
 */
#ifndef LMQ_TESTS_BUILD_MAKE_TORCH_H
#define LMQ_TESTS_BUILD_MAKE_TORCH_H

#include "tests/build/build_checkpoint.h"

/* Hands each file to `emit`, which writes it, says what it is, and frees it. */
void make_torch(void (*emit)(const char *name, struct bytes *bytes,
                             const char *sentence));

#endif
