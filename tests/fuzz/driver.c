/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays files through a fuzz target without a fuzzer, so that every corpus is a unit test: driver
 * FILE-OR-DIRECTORY... Prints TAP.
 */
#include <dirent.h>
#include <sys/stat.h>

#include "common/files/file.h"
#include "common/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned replayed;

static void replay_file(const char *path)
{
        _cleanup_buf_ struct buf b;
        struct error err;

        buf_init(&b, MiB(64));
        if (file_read(path, &b, &err)) {
                printf("Bail out! %s\n", err.text);
                exit(1);
        }
        LLVMFuzzerTestOneInput(b.data, b.size);
        replayed++;
}

static void replay_path(const char *path)
{
        _cleanup_closedir_ DIR *dir = opendir(path);
        struct dirent *entry;

        if (!dir) {
                replay_file(path);
                return;
        }
        while ((entry = readdir(dir))) {
                _cleanup_free_ char *inner = NULL;

                if (entry->d_name[0] == '.')
                        continue;
                inner = path_join(path, entry->d_name);
                if (inner)
                        replay_path(inner);
        }
}

int main(int argc, char **argv)
{
        LLVMFuzzerTestOneInput(NULL, 0);
        for (int i = 1; i < argc; i++)
                replay_path(argv[i]);
        printf("ok 1 - replayed %u files\n1..1\n", replayed);
        return 0;
}
