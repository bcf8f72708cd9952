/*
 * Providers for programs: snug_provider_*.
 */
#include "api/provider.h"

#include <errno.h>
#include <string.h>

#include "api/config.h"
#include "meta/meta.h"
#include "options/options.h"
#include "platform/file.h"
#include "platform/memory.h"
#include "provider/names.h"
#include "provider/provider_file.h"
#include "provider/provider_prealloc.h"

/* A provider of the program's own functions. They are called under the lock, as they may count on
 * one call at a time. */
struct own_provider {
    struct provider provider;
    struct provider_lock lock;
    struct snug_provider_functions functions;
};

struct snug_provider {
    enum { PROVIDER_OF_POOL, PROVIDER_OF_FILES, PROVIDER_OWN } kind;
    union {
        struct pool pool;
        struct file_provider file;
        struct own_provider own;
    };
    char path[OS_PATH_MOST]; /* of files */
};

static snug_provider *or_error(snug_provider *provider, int error)
{
    if (provider == NULL)
        errno = error;
    return provider;
}

/* In pages of its own: it is larger than what meta hands out, and rare. */
static snug_provider *provider_new(int kind)
{
    snug_provider *provider = os_map(align_up(sizeof(*provider), os_page_size()), OS_PAGES_SMALL);
    if (provider == NULL)
        return NULL;
    mapping_name(provider, sizeof(*provider), "snug metadata");
    provider->kind = (__typeof__(provider->kind))kind;
    return provider;
}

static void provider_delete(snug_provider *provider)
{
    os_unmap(provider, align_up(sizeof(*provider), os_page_size()));
}

const struct provider *provider_in(snug_provider *provider)
{
    return provider->kind == PROVIDER_OF_POOL    ? &provider->pool.provider
           : provider->kind == PROVIDER_OF_FILES ? &provider->file.pool.provider
                                                 : &provider->own.provider;
}

void snug_provider_destroy(snug_provider *provider)
{
    if (provider == NULL)
        return;
    if (provider->kind == PROVIDER_OF_POOL)
        pool_end(&provider->pool);
    else if (provider->kind == PROVIDER_OF_FILES)
        provider_file_end(&provider->file);
    else
        provider_lock_end(&provider->own.lock);
    provider_delete(provider);
}

snug_provider *snug_provider_prealloc(size_t bytes, int fallback)
{
    bool possible = bytes != 0 && bytes <= MAX_REQUEST;
    snug_provider *provider = possible ? provider_new(PROVIDER_OF_POOL) : NULL;
    if (provider != NULL &&
        !provider_prealloc_init(&provider->pool, bytes, fallback != 0 ? &provider_os : NULL)) {
        snug_provider_destroy(provider);
        provider = NULL;
    }
    return or_error(provider, ENOMEM);
}

/* ---- Files ---- */

static bool file_config_is_sound(const struct snug_file_config *config)
{
    const char *path = config->path != NULL ? config->path : config->directory;
    return (config->path == NULL || config->directory == NULL) &&
           (path == NULL || strlen(path) < OS_PATH_MOST) && config->bytes <= MAX_REQUEST &&
           (config->grow_factor == 0 || (config->grow_factor >= LEAST_GROW_FACTOR / 1000.0 &&
                                         config->grow_factor <= MOST_GROW_FACTOR / 1000.0));
}

snug_provider *snug_provider_file(const struct snug_file_config *config)
{
    struct snug_file_config known;
    if (!config_read(&known, sizeof(known), config, config->size) || !file_config_is_sound(&known))
        return or_error(NULL, EINVAL);
    snug_provider *provider = provider_new(PROVIDER_OF_FILES);
    if (provider == NULL)
        return or_error(NULL, ENOMEM);
    const char *path = known.path != NULL        ? known.path
                       : known.directory != NULL ? known.directory
                                                 : DEFAULT_FILE_DIR;
    memcpy(provider->path, path, strlen(path) + 1);
    struct file_settings settings = {
        .directory = provider->path,
        .path = known.path != NULL ? provider->path : NULL,
        .bytes = known.bytes != 0 ? known.bytes : DEFAULT_PROVIDER_SIZE,
        .grows = known.grow_factor != 0,
        .factor = (size_t)(known.grow_factor * 1000),
        .silent = true,
    };
    int error =
        provider_file_init(&provider->file, &settings, known.fallback != 0 ? &provider_os : NULL);
    if (error != 0 && known.fallback == 0) {
        snug_provider_destroy(provider);
        return or_error(NULL, error);
    }
    return provider;
}

/* ---- The program's own ---- */

static struct own_provider *own_of(const struct provider *provider)
{
    return CONTAINER_OF(provider, struct own_provider, provider);
}

static void *own_take(const struct provider *provider, size_t bytes, size_t alignment)
{
    struct own_provider *own = own_of(provider);
    lock_acquire(&own->lock.lock);
    void *start = own->functions.take(own->functions.context, bytes, alignment);
    lock_release(&own->lock.lock);
    return start;
}

/* Calls `back`, a function that takes memory back; NULL: it never does. */
static bool own_back(struct own_provider *own, int (*back)(void *, void *, size_t), void *start,
                     size_t bytes)
{
    if (back == NULL)
        return false;
    lock_acquire(&own->lock.lock);
    bool done = back(own->functions.context, start, bytes) != 0;
    lock_release(&own->lock.lock);
    return done;
}

static bool own_give(const struct provider *provider, void *start, size_t bytes)
{
    struct own_provider *own = own_of(provider);
    return own_back(own, own->functions.give, start, bytes);
}

static bool own_purge(const struct provider *provider, void *start, size_t bytes)
{
    struct own_provider *own = own_of(provider);
    return own_back(own, own->functions.purge, start, bytes);
}

snug_provider *snug_provider_create(const struct snug_provider_functions *functions)
{
    struct snug_provider_functions known;
    if (!config_read(&known, sizeof(known), functions, functions->size) || known.take == NULL)
        return or_error(NULL, EINVAL);
    snug_provider *provider = provider_new(PROVIDER_OWN);
    if (provider == NULL)
        return or_error(NULL, ENOMEM);
    /* It resizes nothing: who asks takes another range and copies. */
    provider->own = (struct own_provider){.provider = {.take = own_take,
                                                       .give = own_give,
                                                       .purge = own_purge,
                                                       .resize = provider_none.resize,
                                                       .unclean = known.zeroed == 0},
                                          .functions = known};
    provider_lock_init(&provider->own.lock);
    return provider;
}
