/*
 * A directory for the files of a test. See scratch.h.
 */
#include "scratch.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char scratch[64];

int scratch_begin(void **state)
{
    strcpy(scratch, "/tmp/snug.test.XXXXXX");
    return options_reset(state) != 0 || mkdtemp(scratch) == NULL;
}

int scratch_end(void **state)
{
    size_t left = scratch_count();
    rmdir(scratch);
    return options_reset(state) != 0 || left != 0;
}

size_t scratch_count(void)
{
    size_t count = 0;
    DIR *open = opendir(scratch);
    assert_non_null(open);
    while (readdir(open) != NULL)
        count++;
    closedir(open);
    return count - 2; /* . and .. */
}
