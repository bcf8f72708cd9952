/*
 * Configs that programs pass: structures that begin with their size, so that a program and a
 * library of different versions understand each other.
 */
#ifndef SNUG_API_CONFIG_H
#define SNUG_API_CONFIG_H

#include "base/common.h"

/* Copies a config that begins with its size, of which this version knows `known_size` bytes. False:
 * it has no size, or sets what this version does not know. */
bool config_read(void *known, size_t known_size, const void *given, size_t given_size);

#endif
