/*
 * Prints docs/statistics.schema.json, the JSON Schema (2020-12) of the statistics, from the tables
 * of gauges and counters. It is a program of its own, like options_doc.c.
 */
#include <stdio.h>
#include <string.h>

static const struct member {
    const char *group, *name;
} members[] = {
#define GAUGE(group, name, unit, source, text) {#group, #name},
#include "report/gauges.def"
#undef GAUGE
#define COUNTER(name, text) {"events", #name},
#include "stats/counters.def"
#undef COUNTER
};

static const char *last = "";

static void print_required(const char *group)
{
    const char *comma = "";
    printf("      \"required\": [");
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        if (strcmp(members[i].group, group) == 0) {
            printf("%s\"%s\"", comma, members[i].name);
            comma = ", ";
        }
    printf("],\n");
}

static void open_group(const char *group)
{
    if (strcmp(group, last) == 0) {
        printf(",\n");
        return;
    }
    printf("%s    \"%s\": {\n      \"type\": \"object\", \"additionalProperties\": false,\n",
           *last == 0 ? "" : "\n      }\n    },\n", group);
    print_required(group);
    printf("      \"properties\": {\n");
    last = group;
}

static void print_member(const char *name, const char *unit, const char *text)
{
    printf("        \"%s\": {\"type\": [\"integer\", \"null\"], \"minimum\": 0, "
           "\"description\": \"%s%s\"}",
           name, text, strncmp(unit, "BYTES", 5) == 0 ? "; bytes" : "");
}

static void print_sizes(const char *name, const char *description)
{
    printf("    \"%s\": {\n      \"description\": \"%s\",\n"
           "      \"type\": [\"array\", \"null\"], \"items\": {\n"
           "        \"type\": \"object\", \"additionalProperties\": false,\n"
           "        \"required\": [\"up_to\", \"blocks\", \"bytes\"],\n"
           "        \"properties\": {\n"
           "          \"up_to\": {\"type\": [\"integer\", \"null\"], \"minimum\": 1},\n"
           "          \"blocks\": {\"type\": \"integer\", \"minimum\": 0},\n"
           "          \"bytes\": {\"type\": \"integer\", \"minimum\": 0}\n"
           "        }\n      }\n    }",
           name, description);
}

static void print_heaps(const char *name, const char *description)
{
    static const char *const numbers[] = {"heaps", "blocks", "live", "mapped", "peak"};
    printf(",\n    \"%s\": {\n"
           "      \"description\": \"%s\",\n"
           "      \"type\": [\"array\", \"null\"], \"items\": {\n"
           "        \"type\": \"object\", \"additionalProperties\": false,\n"
           "        \"required\": [\"name\", \"provider\", \"heaps\", \"blocks\", \"live\", "
           "\"mapped\", \"peak\", \"quota\"],\n"
           "        \"properties\": {\n"
           "          \"name\": {\"type\": \"string\"},\n"
           "          \"provider\": {\"enum\": [\"system\", \"prealloc\", \"file\", \"buffer\", "
           "\"functions\", \"several\"]},\n",
           name, description);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        printf("          \"%s\": {\"type\": \"integer\", \"minimum\": 0},\n", numbers[i]);
    printf("          \"quota\": {\"type\": [\"integer\", \"null\"], \"minimum\": 1, "
           "\"description\": \"of each; null: none\"}\n"
           "        }\n      }\n    }");
}

int main(void)
{
    printf(
        "{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
        "  \"title\": \"snug statistics\",\n"
        "  \"description\": \"One print. A file of several has one such object in each line. null: "
        "not known.\",\n"
        "  \"type\": \"object\", \"additionalProperties\": false,\n  \"properties\": {\n"
        "    \"schema\": {\"const\": \"snug-statistics-1\"},\n"
        "    \"pid\": {\"type\": \"integer\", \"minimum\": 1},\n"
        "    \"milliseconds\": {\"type\": \"integer\", \"minimum\": 0, \"description\": "
        "\"since the library was loaded\"},\n"
        "    \"reason\": {\"type\": \"string\", \"description\": \"exit, interval, bytes, signal, "
        "asked for, or the name of a fatal signal\"},\n");
#define GAUGE(group, name, unit, source, text) \
    open_group(#group); \
    print_member(#name, #unit, text);
#include "report/gauges.def"
#undef GAUGE
#define COUNTER(name, text) \
    open_group("events"); \
    print_member(#name, "COUNT", text);
#include "stats/counters.def"
#undef COUNTER
    printf(
        "\n      }\n    },\n    \"classes\": {\n      \"description\": \"small objects by size; "
        "numbers of objects, and of slabs; peak: in use at the highest point; sparse: of which at "
        "most a quarter is in use, and "
        "what is free in "
        "those, if they were walked\",\n      \"type\": \"array\", \"items\": {\n"
        "        \"type\": \"object\", \"additionalProperties\": false,\n"
        "        \"required\": [\"size\", \"live\", \"magazines\", \"depots\", \"free\", "
        "\"slabs\", \"peak\", \"sparse_slabs\", \"sparse_bytes\"],\n        \"properties\": {\n");
    static const char *const of_class[] = {"size", "live", "magazines", "depots", "free", "slabs"};
    for (unsigned i = 0; i < 6; i++)
        printf("          \"%s\": {\"type\": \"integer\", \"minimum\": 0},\n", of_class[i]);
    printf("          \"peak\": {\"type\": [\"integer\", \"null\"], \"minimum\": 0},\n");
    printf("          \"sparse_slabs\": {\"type\": [\"integer\", \"null\"], \"minimum\": 0},\n"
           "          \"sparse_bytes\": {\"type\": [\"integer\", \"null\"], \"minimum\": 0}\n"
           "        }\n      }\n    },\n");
    print_sizes("medium", "medium blocks in use by doublings of their size; null: not walked");
    printf(",\n");
    print_sizes("medium_at_peak", "the same at the highest point, of many an estimate from some of "
                                  "them; null: nothing was kept");
    printf(",\n");
    print_sizes("large", "large and huge blocks in use by doublings of what was asked for; rows of "
                         "none are left out, and null is no bound");
    printf(",\n");
    print_sizes("large_at_peak", "the same at the highest point; null: nothing was kept");
    print_heaps("heaps", "heaps of the program's own; those of one name, provider and quota are a "
                         "row, and peak is that of the one that had most; null: not known");
    print_heaps("heaps_at_peak", "the same at the highest point; null: not known");
    printf("\n  },\n"
           "  \"required\": [\"schema\", \"pid\", \"milliseconds\", \"reason\", \"memory\", "
           "\"requested\", \"blocks\", \"process\", \"peaks\", \"other\", \"system\", \"locks\", "
           "\"events\", "
           "\"classes\", \"medium\", \"medium_at_peak\", \"large\", \"large_at_peak\", "
           "\"heaps\", \"heaps_at_peak\"]\n}\n");
    return 0;
}
