/* SPDX-License-Identifier: Apache-2.0 */
/* A section of a configuration file: accepted names and values have no NUL bytes, and names are unique. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/config/config_file.h"
#include "common/files/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
        if (!ok)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_close_ int fd = memfd_create("config", 0);
        _cleanup_config_section_ struct config_section section = { 0 };
        char path[64];
        struct error err;

        require(fd >= 0 && file_write_all(fd, data, size, "config", NULL) == ST_OK);
        require(file_write_all(fd, "\n", 1, "config", NULL) == ST_OK); /* else nearly all are refused as cut off */
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (config_section_read(path, "serve", &section, &err)) {
                require(section.count == 0);
                return 0;
        }
        for (size_t i = 0; i < section.count; i++) {
                require(section.entries[i].line > 0);
                for (size_t v = 0; v < section.entries[i].count; v++)
                        require(section.entries[i].values[v] != NULL);
                for (size_t k = 0; k < i; k++)
                        require(strcmp(section.entries[i].name, section.entries[k].name) != 0);
        }
        return 0;
}
