/*
 * The totals as XML, in the element names that readers of glibc's malloc_info look for.
 */
#include "heap/totals.h"
#include "report/report.h"

/* Writes the lines that stand twice: in the one heap, and for the whole. */
static void write_totals(FILE *stream, const struct heap_totals *totals)
{
    size_t small = totals->small_free + totals->small_depots + totals->small_cached;
    size_t rest = totals->dirty + totals->clean + totals->cells_free + totals->cells_cached +
                  totals->hardened.mapped - totals->hardened.live;
    size_t mapped = totals->segments + totals->huge + totals->hardened.mapped;
    fprintf(stream,
            "<total type=\"fast\" count=\"%zu\" size=\"%zu\"/>\n"
            "<total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n"
            "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n"
            "<system type=\"current\" size=\"%zu\"/>\n"
            "<system type=\"max\" size=\"%zu\"/>\n"
            "<aspace type=\"total\" size=\"%zu\"/>\n"
            "<aspace type=\"mprotect\" size=\"%zu\"/>\n",
            totals->small_free_count, small, totals->free_runs, rest, totals->huge_count,
            totals->huge, mapped, mapped, mapped, mapped);
}

static void write_class(FILE *stream, size_t class, const struct class_totals *objects)
{
    size_t count = objects->free + objects->depots + objects->cached;
    if (count != 0)
        fprintf(stream, "<size from=\"%zu\" to=\"%zu\" total=\"%zu\" count=\"%zu\"/>\n",
                class_bytes(class - 1) + 1, class_bytes(class), count * class_bytes(class), count);
}

void report_xml(FILE *stream)
{
    /* All numbers are read before anything is written, so that they leave out what stdio
     * allocates. */
    struct class_totals classes[CLASS_COUNT];
    struct heap_totals totals = heap_totals_of(NULL, &heap_default, classes);
    fputs("<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n", stream);
    for (size_t class = 1; class < CLASS_COUNT; class++)
        write_class(stream, class, &classes[class]);
    fputs("</sizes>\n", stream);
    write_totals(stream, &totals);
    fputs("</heap>\n", stream);
    write_totals(stream, &totals);
    fputs("</malloc>\n", stream);
}
