/*
 * trees.c - trees that are built, read and taken down.
 *
 * usage: trees search|syntax [NODES [TREES [ROUNDS]]]       1,000, 100 and 2,000 unless given
 *
 * It imitates compilers, browsers and databases: TREES trees of up to NODES nodes of 40 bytes, each
 * with a name of 8 to 48 bytes, are alive. In each round any of them is taken down, node by node
 * from its leaves, another is built in its place, and all names of that one are read twice.
 *
 *   search    nodes are put where their key belongs, in random order, and read in that of the keys
 *   syntax    nodes are made in the order in which they are read: a node, then what is below it
 *
 * An operation is a node. So what a program does with its memory is measured as well: nodes that
 * were freed in the order of one tree are had again for the next, and how far apart they lie is
 * what its reader waits for.
 */
#include <stdbool.h>

#include "workload.h"

enum { NODES_MOST = 1000000, TREES_MOST = 100000, WALKS = 2, NAME_LEAST = 8, NAME_MOST = 48 };

struct node {
    struct node *left, *right;
    uint64_t key;
    char *name;
    uint64_t uses;
};

static uint64_t state = 0x9e3779b97f4a7c15u;
static int64_t live;
static volatile uint64_t read_of_all;

static struct node *node_new(uint64_t key)
{
    struct node *node = malloc(sizeof *node);
    uint32_t length = random_between(&state, NAME_LEAST, NAME_MOST);
    char *name = malloc(length);
    if (node == NULL || name == NULL)
        die("malloc");
    memset(name, (int)length, length);
    *node = (struct node){NULL, NULL, key, name, 0};
    live += (int64_t)(sizeof *node) + length;
    return node;
}

static void node_free(struct node *node)
{
    live -= (int64_t)(sizeof *node) + node->name[0];
    free(node->name);
    free(node);
}

static void insert(struct node **tree, uint64_t key)
{
    while (*tree != NULL)
        tree = key < (*tree)->key ? &(*tree)->left : &(*tree)->right;
    *tree = node_new(key);
}

static void take_down(struct node *tree)
{
    if (tree == NULL)
        return;
    take_down(tree->left);
    take_down(tree->right);
    node_free(tree);
}

static uint64_t walk(struct node *tree)
{
    if (tree == NULL)
        return 0;
    uint64_t read = walk(tree->left);
    tree->uses++;
    return read + (uint64_t)tree->name[0] + walk(tree->right);
}

static void build_search(struct node **tree, uint32_t nodes)
{
    for (uint32_t i = 0; i < nodes; i++)
        insert(tree, random_next(&state));
}

static void build_syntax(struct node **tree, uint32_t nodes)
{
    if (nodes == 0)
        return;
    uint32_t left = random_between(&state, 0, nodes - 1);
    *tree = node_new(left);
    build_syntax(&(*tree)->left, left);
    build_syntax(&(*tree)->right, nodes - 1 - left);
}

static void (*build_kind)(struct node **tree, uint32_t nodes);

static uint64_t build(struct node **tree, uint32_t most)
{
    uint32_t nodes = random_between(&state, most / 2, most);
    build_kind(tree, nodes);
    meter_set(0, live);
    return nodes;
}

static void take_down_whole(struct node **tree)
{
    take_down(*tree);
    *tree = NULL;
    meter_set(0, live);
}

int main(int argc, char **argv)
{
    bool search = argc > 1 && strcmp(argv[1], "search") == 0;
    if (argc < 2 || argc > 5 || (!search && strcmp(argv[1], "syntax") != 0)) {
        fprintf(stderr, "usage: %s search|syntax [NODES [TREES [ROUNDS]]]\n", argv[0]);
        return 2;
    }
    build_kind = search ? build_search : build_syntax;
    uint32_t nodes = argc > 2 ? (uint32_t)number_argument(argv[2], 2, NODES_MOST) : 1000;
    uint32_t count = argc > 3 ? (uint32_t)number_argument(argv[3], 1, TREES_MOST) : 100;
    long rounds = argc > 4 ? number_argument(argv[4], 1, 1000000000) : 2000;
    struct node **trees = memory_of_our_own(count * sizeof *trees);
    for (uint32_t i = 0; i < count; i++)
        build(&trees[i], nodes);

    uint64_t operations = 0, start = now_ns();
    for (long round = 0; round < rounds; round++) {
        struct node **tree = &trees[random_between(&state, 0, count - 1)];
        take_down_whole(tree);
        operations += build(tree, nodes);
        for (int i = 0; i < WALKS; i++)
            read_of_all += walk(*tree);
    }
    uint64_t end = now_ns();
    print_figures(operations, (double)(end - start) / (double)operations);
    return 0;
}
