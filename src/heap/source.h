/*
 * Where malloc's heap has its memory from, as the options say.
 */
#ifndef SNUG_HEAP_SOURCE_H
#define SNUG_HEAP_SOURCE_H

#include "provider/provider.h"

/* The provider that SNUG_PROVIDER names, made ready. What cannot be had is said in one line. */
const struct provider *heap_source(void);

#endif
