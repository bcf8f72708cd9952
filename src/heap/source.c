/*
 * The provider of malloc's heap. See source.h.
 */
#include "heap/source.h"

#include "options/options.h"
#include "platform/output.h"
#include "provider/provider_file.h"
#include "provider/provider_prealloc.h"

static struct pool prealloc;
static struct file_provider file;

static const struct provider *source_prealloc(const struct provider *fallback)
{
    if (!provider_prealloc_init(&prealloc, options.provider_size, fallback))
        os_print(2, "snug: the system does not have %zu MiB to be taken ahead%s\n",
                 options.provider_size >> 20, fallback != NULL ? "; taking what is needed" : "");
    return &prealloc.provider;
}

static const struct provider *source_file(const struct provider *fallback)
{
    struct file_settings settings = {
        .directory = options.file_dir != NULL ? options.file_dir : DEFAULT_FILE_DIR,
        .path = options.file_dir != NULL ? NULL : options.file,
        .bytes = options.provider_size,
        .grows = options.file_grow != 0,
        .factor = options.grow_factor,
    };
    provider_file_init(&file, &settings, fallback);
    return &file.pool.provider;
}

AT_START const struct provider *heap_source(void)
{
    const struct provider *fallback = options.provider_fallback != 0 ? &provider_os : NULL;
    if (options.provider == PROVIDER_PREALLOC)
        return source_prealloc(fallback);
    if (options.provider == PROVIDER_FILE)
        return source_file(fallback);
    return &provider_os;
}
