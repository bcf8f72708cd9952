/*
 * What snug_heap_create asks of programs' providers.
 */
#ifndef SNUG_API_PROVIDER_H
#define SNUG_API_PROVIDER_H

#include "provider/provider.h"
#include "snug/snug.h"

/* The provider behind a handle. */
const struct provider *provider_in(snug_provider *provider);

#endif
