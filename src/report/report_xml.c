/*
 * The totals as XML, in the element names that readers of glibc's malloc_info look for.
 */
#include "report/report.h"

void report_xml(FILE *stream)
{
    struct heap_totals totals = heap_totals();
    size_t resting = totals.small_free + totals.small_waiting + totals.small_cached;
    size_t rest = totals.dirty + totals.clean + totals.cells_free + totals.cells_cached;
    size_t mapped = totals.segments + totals.huge;
    fputs("<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n", stream);
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        size_t cached;
        struct arena_totals objects = heap_class_totals(class, &cached);
        size_t count = objects.free + objects.waiting + cached;
        if (count != 0)
            fprintf(stream, "<size from=\"%zu\" to=\"%zu\" total=\"%zu\" count=\"%zu\"/>\n",
                    class_bytes(class - 1) + 1, class_bytes(class), count * class_bytes(class),
                    count);
    }
    fprintf(stream,
            "</sizes>\n"
            "<total type=\"fast\" count=\"%zu\" size=\"%zu\"/>\n"
            "<total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n"
            "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n"
            "<system type=\"current\" size=\"%zu\"/>\n"
            "<system type=\"max\" size=\"%zu\"/>\n"
            "<aspace type=\"total\" size=\"%zu\"/>\n"
            "<aspace type=\"mprotect\" size=\"%zu\"/>\n"
            "</heap>\n",
            totals.small_free_count, resting, totals.free_runs, rest, totals.huge_count,
            totals.huge, mapped, mapped, mapped, mapped);
    fprintf(stream,
            "<total type=\"fast\" count=\"%zu\" size=\"%zu\"/>\n"
            "<total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n"
            "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n"
            "<system type=\"current\" size=\"%zu\"/>\n"
            "<system type=\"max\" size=\"%zu\"/>\n"
            "<aspace type=\"total\" size=\"%zu\"/>\n"
            "<aspace type=\"mprotect\" size=\"%zu\"/>\n"
            "</malloc>\n",
            totals.small_free_count, resting, totals.free_runs, rest, totals.huge_count,
            totals.huge, mapped, mapped, mapped, mapped);
}
