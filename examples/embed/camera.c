/* A camera that computes its frames, which are stored while it computes the next ones.

       camera PLACE FRAMES

   Build: cc -O2 $(python -m zcore.embed --cflags) camera.c $(python -m zcore.embed --libs) -o camera */
#include <stdio.h>
#include <stdlib.h>

#include "zcore.h"

enum { N = 64, CHUNK = 16 };

static void expose(uint16_t *frame, int number)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) frame[i * N + j] = (uint16_t)(number + i * j);
}

int main(int n_arguments, char **arguments)
{
    static uint16_t frame[N * N];
    const char *place = n_arguments > 1 ? arguments[1] : "camera.zarr";
    int n_frames = n_arguments > 2 ? atoi(arguments[2]) : 100;
    int64_t found[3];
    const int64_t shape[3] = {0, N, N}, chunks[3] = {CHUNK, N, N};
    zcore_error error;
    zcore_array *array;
    zcore_writer *writer;
    int code;

    if (zcore_start(&error) != 0) return puts(error.message), 1;
    array = zcore_open(place, "r+", NULL, &error);
    if (array == NULL && error.code == ZCORE_NODE_NOT_FOUND)
        array = zcore_create(place, 3, shape, chunks, "uint16", NULL, &error);
    if (array == NULL || zcore_expect(array, "uint16", 3, &error) != 0) return puts(error.message), 1;
    zcore_shape(array, found);
    if (found[1] != N || found[2] != N) return puts("the frames of this array have another shape"), 1;
    writer = zcore_writer_open(array, 0, NULL, &error);
    zcore_close(array);
    if (writer == NULL) return puts(error.message), 1;

    for (int i = 0; i < n_frames; i++) {
        expose(frame, i);
        /* An error is one of frames before: they wait in the writer, and this one was not taken. */
        while (zcore_writer_append(writer, frame, 1, NULL, &error) != 0) {
            fprintf(stderr, "%s\n", error.message);
            if (error.code != ZCORE_WRITER) return 1;
            fputs("make room and press enter: ", stderr);
            if (getchar() == EOF) return 1;
        }
    }
    code = zcore_writer_close(writer, &error);
    puts(code == 0 ? "all is stored" : error.message);
    return code != 0;
}
