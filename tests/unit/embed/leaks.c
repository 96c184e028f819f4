/* Opens, uses and closes an array many times; says if descriptors or memory have grown. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "zcore.h"

static int descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int n = 0;
    while (folder != NULL && readdir(folder) != NULL) n++;
    if (folder != NULL) closedir(folder);
    return n;
}

static long resident(void)
{
    long n = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL && fscanf(file, "%*d %ld", &n) != 1) n = 0;
    if (file != NULL) fclose(file);
    return n * sysconf(_SC_PAGESIZE);
}

int main(int n_arguments, char **arguments)
{
    const int64_t shape[1] = {1000}, start[1] = {95}, count[1] = {10}, chunks[1] = {100};
    int n = n_arguments > 2 ? atoi(arguments[2]) : 100, open_before = 0;
    long used_before = 0;
    double data[10] = {0};
    zcore_error error;
    if (zcore_start(&error) != 0) return puts(error.message), 1;
    zcore_close(zcore_create(arguments[1], 1, shape, chunks, "float64", NULL, &error));
    for (int i = 0; i < n; i++) {
        zcore_array *array = zcore_open(arguments[1], "r+", NULL, &error);
        if (array == NULL || zcore_write(array, start, count, NULL, data, NULL, 1, &error) != 0
            || zcore_read(array, start, count, NULL, data, NULL, 1, &error) != 0)
            return puts(error.message), 1;
        zcore_close(array);
        if (i == n / 5) open_before = descriptors(), used_before = resident();
    }
    if (descriptors() != open_before) return puts("descriptors stay open"), 1;
    if (resident() - used_before > 4 << 20) return puts("memory grows"), 1;
    puts("nothing more");
    return 0;
}
