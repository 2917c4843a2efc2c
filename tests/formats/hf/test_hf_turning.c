/*
 * test_hf_turning.c - families whose config.json says of kinds of layers, or of
 * each layer, how it turns: Cohere Compass.
 */
#include "config.h"

#include <string.h>

#include "tests/build/suite.h"
#include "tests/formats/hf_models.h"

/* ---- Cohere Compass ---- */

#define KINDS(full, near)                                                     \
    "'layer_types':['sliding_attention','full_attention',"                    \
    "'sliding_attention','sliding_attention','sliding_attention',"            \
    "'sliding_attention','sliding_attention','full_attention'],"              \
    "'sliding_window':16,'rope_parameters':{" full near "}"
#define BASE(base) "{'rope_type':'default','rope_theta':" base "}"

START_TEST(kinds_of_layers_turn_or_stand_still)
{
    static const char class[] = "CohereCompassForCausalLM";
    struct model *m = read_small(
        class, KINDS("'full_attention':null,", "'sliding_attention':"
                     "{'rope_theta':5e4,'mrope_section':[24,20,20]}"));

    ck_assert_str_eq(m->h.architecture, "cohere_compass");
    assert_layers(&m->h, LMQ_LAYER_FULL, ".x.....x");
    assert_layers(&m->h, LMQ_LAYER_NOPE, ".x.....x");
    assert_near(m->h.rope_theta, 5e4);
    ck_assert(!(m->h.rope_local_theta > 0));
    assert_near(m->h.logit_scale, 1);
    m = read_small(class, KINDS("'full_attention':" BASE("4e4"),
                                ",'sliding_attention':null"));
    assert_layers(&m->h, LMQ_LAYER_NOPE, "x.xxxxx.");
    assert_near(m->h.rope_theta, 4e4);
    m = read_small(class, KINDS("'full_attention':" BASE("4e4"),
                                ",'sliding_attention':" BASE("3e4")));
    assert_layers(&m->h, LMQ_LAYER_NOPE, ".");
    assert_near(m->h.rope_theta, 4e4);
    assert_near(m->h.rope_local_theta, 3e4);
    m = read_small(class, "'logit_scale':null,'rope_parameters':"
                          "{'full_attention':" BASE("2e4") "}");
    ck_assert_uint_eq(lmq_layer_window(&m->h, 7), 0);
    assert_near(m->h.rope_theta, 2e4);
    assert_near(m->h.logit_scale, 1);
}
END_TEST

START_TEST(kinds_that_nothing_is_said_of_are_refused)
{
    static const char class[] = "CohereCompassForCausalLM";

    assert_unsupported(class, KINDS("'full_attention':" BASE("4e4"), ""),
                       "'rope_parameters' without 'sliding_attention'");
    assert_unsupported(class, KINDS("", "'sliding_attention':" BASE("4e4")),
                       "'rope_parameters' without 'full_attention'");
    assert_unsupported(class, "'sliding_window':16",
                       "a model of this kind without 'rope_parameters'");
    assert_unsupported(class, "'rope_parameters':{'rope_theta':1e4}",
                       "'rope_parameters' without kinds of layers");
    assert_unsupported(class,
                       KINDS("'full_attention':null,", "'sliding_attention':"
                             "{'rope_type':'linear','factor':2.0}"),
                       "rotary scaling of layers with a window");
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        kinds_of_layers_turn_or_stand_still,
        kinds_that_nothing_is_said_of_are_refused,
    };

    return RUN_SUITE("hf_turning", tests);
}
