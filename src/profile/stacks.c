/*
 * The tree of calls. See stacks.h.
 */
#include "profile/stacks.h"

#include <string.h>

/* Layout: the address of the call that stands for all that was cut off a stack. */
#define CUT_CODE ((uint64_t)1)

void stacks_init(struct stacks *stacks)
{
    stacks->nodes.entry_bytes = sizeof(struct stack_node);
}

static const char *name_end_of(const char *name)
{
    size_t length = strlen(name);
    return length < OBJECT_NAME_MOST ? name : name + length - (OBJECT_NAME_MOST - 1);
}

/* The number of an object; 0: there is no room. */
static uint32_t object_put(struct stacks *stacks, const struct os_object *object)
{
    struct table *table = &stacks->objects;
    const char *name = name_end_of(object->name);
    struct stack_object *entry;
    for (uint32_t number = table->used; number-- > 1;) { /* the latest first */
        entry = table_at(table, number, sizeof(*entry));
        if (entry->start == object->start && entry->end == object->end &&
            entry->bias == object->bias && strcmp(entry->name, name) == 0)
            return number;
    }
    uint32_t number = table_add(table, sizeof(*entry));
    if (number == 0)
        return 0;
    entry = table_at(table, number, sizeof(*entry));
    entry->start = object->start;
    entry->end = object->end;
    entry->bias = object->bias;
    memcpy(entry->name, name, strlen(name));
    return number;
}

static uint32_t node_put(struct stacks *stacks, uint64_t code, uint32_t parent, uint32_t object)
{
    struct index *nodes = &stacks->nodes;
    uint32_t *bucket = index_bucket(nodes, code, parent);
    for (uint32_t number = bucket == NULL ? 0 : *bucket; number != 0;) {
        const struct stack_node *node = stacks_node(stacks, number);
        if (node->call.key == code && node->call.salt == parent && node->object == object)
            return number;
        number = node->call.next;
    }
    uint32_t number = table_add(&nodes->table, nodes->entry_bytes);
    if (number == 0)
        return 0;
    *stacks_node(stacks, number) =
        (struct stack_node){.call = {.key = code, .salt = parent}, .object = object};
    return index_put(nodes, number) ? number : 0;
}

uint32_t stacks_put(struct stacks *stacks, const struct unwind_stack *stack)
{
    uint32_t objects[UNWIND_OBJECTS], node = 0;
    for (unsigned i = 0; i < stack->object_count; i++)
        objects[i] = object_put(stacks, &stack->objects[i]);
    if (stack->is_cut || stack->count == 0)
        node = node_put(stacks, CUT_CODE, 0, 0);
    for (unsigned i = stack->count; i-- > 0;) {
        const struct unwind_frame *frame = &stack->frames[i];
        uint32_t object = frame->object == 0 ? 0 : objects[frame->object - 1];
        node = node_put(stacks, frame->code, node, object);
        if (node == 0)
            return 0;
    }
    return node;
}
