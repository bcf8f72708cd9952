/*
 * makers_parts.cpp - a program and a library that have the C++ runtime in them, each a part: the
 * library exports the forms of new and delete that it uses, the program takes those from there and
 * has the runtime's own of all others. So its new[] calls another's new, while another's delete[]
 * may free what it made. In the hardened preset this is right.
 *
 * LIBRARY: the library; otherwise the program.
 */
#include <cstdio>

struct item {
    int number;
};

extern "C" {
item *item_make();
void item_drop(item *item);
void text_drop(char *text);
}

#if defined(LIBRARY)

item *item_make()
{
    return new item;
}

void item_drop(item *item)
{
    delete item;
}

void text_drop(char *text)
{
    delete[] text;
}

#else

/* What a compiler cannot see, so that it does not leave out both. */
static char *unseen(char *text)
{
    asm volatile("" : "+r"(text) : : "memory");
    return text;
}

int main()
{
    item_drop(item_make());
    delete[] unseen(new char[50]);
    text_drop(unseen(new char[60]));
    puts("parts: all was freed");
    return 0;
}

#endif
