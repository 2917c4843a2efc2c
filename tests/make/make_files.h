/*
 * make_files.h - where the parts of make_files put what they make.
 */
#ifndef LMQ_TESTS_BUILD_MAKE_FILES_H
#define LMQ_TESTS_BUILD_MAKE_FILES_H

#include "tests/build/build_checkpoint.h"

/* A tensor in the header of a safetensors file. */
#define E(name, dtype, shape, range)                                          \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape                  \
    ",\"data_offsets\":" range "}"

/* Ends the program. */
void fail(const char *what, const char *why);

/* The path of a file of the corpus; a few live at a time. */
const char *in(const char *name);

/* Its line in the README. */
void describe(const char *name, const char *sentence);

/* Writes the bytes, says what they are, frees them. */
void emit(const char *name, struct bytes *bytes, const char *sentence);

void emit_text(const char *name, const char *text, const char *sentence);

/* Without a sentence nothing is said of it. */
void make_folder(const char *name, const char *sentence);
/* A text in it. */
void save_in(const char *where, const char *name, const char *text);

void make_safetensors(void);
void make_lmq(void);
void make_packed(void);
void make_recipes(void);

#endif
