/*
 * Where malloc's heap takes its memory from, as the options say.
 */
#ifndef SNUG_HEAP_SOURCE_H
#define SNUG_HEAP_SOURCE_H

#include "provider/provider.h"

/* The provider that SNUG_PROVIDER names, made ready. A failure is one line on stderr. */
const struct provider *heap_source(void);

#endif
