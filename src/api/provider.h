/*
 * What the two faces of heaps share: reading configs of other versions, and programs' providers.
 */
#ifndef SNUG_API_PROVIDER_H
#define SNUG_API_PROVIDER_H

#include "provider/provider.h"
#include "snug/snug.h"

/* Copies a config that begins with its size, of which this version knows `known_size` bytes. False:
 * it has no size, or sets what this version does not know. */
bool config_read(void *known, size_t known_size, const void *given, size_t given_size);

/* The provider behind a handle. */
const struct provider *provider_in(snug_provider *provider);

#endif
