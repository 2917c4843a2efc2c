/*
 * expect_lmq.h - writes down what a reader must find in a container.
 */
#ifndef LMQ_TESTS_BUILD_EXPECT_LMQ_H
#define LMQ_TESTS_BUILD_EXPECT_LMQ_H

/* A line for each tensor of the container, and the logits of its model if it
 * can be computed; ends the program if the container cannot be read. */
void expect_lmq(const char *path, const char *text);

#endif
