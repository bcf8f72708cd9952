/*
 * A program that has snug for its malloc because it is linked with it; nothing in the source says
 * so. Built with CMake's find_package (CMakeLists.txt beside this) or with pkg-config:
 *
 *   cc main.c $(pkg-config --cflags --libs snug)
 *   cc main.c $(pkg-config --cflags --libs snug-static)      into the program itself
 */
#include <stdio.h>
#include <stdlib.h>

#include <snug/snug.h>

int main(void)
{
    void *block = malloc(100);
    printf("snug %s, %zu usable bytes of 100, checked: %s\n", snug_version(),
           snug_malloc_usable_size(block), snug_check() == 0 ? "sound" : "damaged");
    free(block);
    return 0;
}
