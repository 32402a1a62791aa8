/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind-tables/cfi_pointer.h"

static bool read_encoded_value(struct reader *r, uint8_t format, uint64_t *ret)
{
        uint16_t v16;
        uint32_t v32;
        int64_t s64;

        switch (format) {
        case 0x00: /* absptr */
        case 0x04: /* udata8 */
        case 0x08: /* signed absptr */
        case 0x0c: /* sdata8 */
                return reader_u64(r, ret);
        case 0x01:
                return reader_uleb128(r, ret);
        case 0x02:
        case 0x0a:
                if (!reader_u16(r, &v16))
                        return false;
                *ret = format == 0x0a ? (uint64_t)(int16_t)v16 : v16;
                return true;
        case 0x03:
        case 0x0b:
                if (!reader_u32(r, &v32))
                        return false;
                *ret = format == 0x0b ? (uint64_t)(int32_t)v32 : v32;
                return true;
        case 0x09:
                if (!reader_sleb128(r, &s64))
                        return false;
                *ret = (uint64_t)s64;
                return true;
        default:
                return false;
        }
}

bool cfi_pointer_read(struct reader *r, uint8_t encoding, uint64_t address, uint64_t base, uint64_t *ret)
{
        uint64_t at = address + r->pos, v;

        if (encoding == CFI_PE_OMIT || (encoding & CFI_PE_INDIRECT) || !read_encoded_value(r, encoding & 0x0f, &v))
                return false;
        switch (encoding & 0x70) {
        case CFI_PE_ABSPTR:
                break;
        case CFI_PE_PCREL:
                v += at;
                break;
        case CFI_PE_DATAREL:
                v += base;
                break;
        default:
                return false;
        }
        *ret = v;
        return true;
}

bool cfi_pointer_skip(struct reader *r, uint8_t encoding)
{
        uint64_t v;

        if (encoding == CFI_PE_OMIT)
                return true;
        return (encoding & 0x70) <= CFI_PE_DATAREL + 0x10 && read_encoded_value(r, encoding & 0x0f, &v);
}
