/*
 * fable_save.h - writes the trained model in the two formats of the test data.
 */
#ifndef FABLE_SAVE_H
#define FABLE_SAVE_H

#include "fable_net.h"

/*
 * fable.bin (llama2.c, version 0), and model.safetensors with config.json and
 * generation_config.json (Hugging Face). Exits if a file cannot be written.
 */
void fable_save(const struct net_params *p, const char *folder);

#endif
