/*
 * learners.c - models that can be calibrated.
 */
#include "config.h"

#include "tests/convert/learners.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "tests/build/suite.h"
#include "tests/runtime/small_vocab.h"

/* Words of bytes: all of the small vocabulary. */
const char *
some_text(size_t n)
{
    static const char letters[] = "abcdefghij klmnop qrstuv wxyz. ABC,\n";
    const char *path = in_folder("text.txt");
    char *text = malloc(n);

    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < n; i++)
        text[i] = letters[(7919 * i * i + 104729 * i + i / 7) %
                          (sizeof(letters) - 1)];
    write_file(path, text, n);
    free(text);
    return path;
}

void
save_learner(const struct family *family)
{
    struct family_model *made = family_make(family, 1, N_IDS, 1);
    struct lmq_buffer vocabulary = llama2c_file();

    family_write(made, in_folder("family"));
    family_free(made);
    write_file(in_folder("tokenizer.bin"), vocabulary.bytes, vocabulary.n);
    free(vocabulary.bytes);
}
