/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoders of OTLP and pprof against decoders on the code that protoc-gen-c generates: both accept the same input
 * with the same content, apart from the differences that tests/support/proto_oracle.h lists. The first byte chooses the
 * format: odd for pprof.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/proto_oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *difference;

        if (!size)
                return 0;
        difference = data[0] & 1 ? oracle_compare_pprof(data + 1, size - 1) : oracle_compare_otlp(data + 1, size - 1);
        if (difference) {
                fprintf(stderr, "%s\n", difference);
                abort();
        }
        return 0;
}
