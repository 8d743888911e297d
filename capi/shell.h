/* What the two halves of libprimus know of each other; primus.h is for its users. */
#ifndef PRIMUS_SHELL_H
#define PRIMUS_SHELL_H

#include <stddef.h>
#include <stdint.h>



/* Keeps the text of an error for primus_error of this thread. */
void primus_shell_error(const char *text, size_t length);

/* A variable of the environment as the host sees it now; NULL if it is not set. */
const char *primus_shell_getenv(const char *name);

#endif
