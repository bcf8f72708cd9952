/*
 * Choosing among the formats. See formats.h.
 */
#include "report/formats.h"

#include <string.h>

static bool ends_in(const char *path, const char *suffix)
{
    size_t length = strlen(path), ending = strlen(suffix);
    return length >= ending && strcmp(path + length - ending, suffix) == 0;
}

unsigned format_of_path(const char *path)
{
    if (ends_in(path, ".json") || ends_in(path, ".jsonl"))
        return FORMAT_JSON;
    if (ends_in(path, ".csv"))
        return FORMAT_CSV;
    if (ends_in(path, ".prom") || ends_in(path, ".om"))
        return FORMAT_OPENMETRICS;
    return FORMAT_TEXT;
}

bool format_write(unsigned format, const struct values *values, bool detail, bool first,
                  struct writer *writer)
{
    switch (format) {
    case FORMAT_JSON:
        json_report(values, writer);
        break;
    case FORMAT_CSV:
        csv_report(values, first, writer);
        break;
    case FORMAT_OPENMETRICS:
        metrics_report(values, writer);
        break;
    default:
        text_report(values, detail, writer);
    }
    return writer_end(writer);
}
