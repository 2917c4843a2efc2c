/*
 * fault_model.h - the model that commands work on while calls fail.
 */
#ifndef LMQ_TESTS_CLI_FAULT_MODEL_H
#define LMQ_TESTS_CLI_FAULT_MODEL_H

/* A model in "model", texts, and empty folders, all in the current one. */
void fault_write_model(void);

#endif
