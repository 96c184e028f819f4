/* CRC-32C (Castagnoli): reflected polynomial 0x82F63B78, all ones before and after.

   The CPU's instruction takes 8 bytes a cycle but answers three cycles later, so three streams are run side by side
   and joined: the checksum of A followed by B is that of A moved past len(B) zero bytes, xor that of B. "Moved past a
   fixed number of zero bytes" is linear, four tables of 256 entries. */
#ifndef ZCORE_CRC32C_H
#define ZCORE_CRC32C_H

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#define ZC_CRC_TARGET __attribute__((target("sse4.2")))
#define ZC_CRC_8(crc, word) ((uint32_t)_mm_crc32_u64((crc), (word)))
#define ZC_CRC_1(crc, byte) _mm_crc32_u8((crc), (byte))
#define ZC_CRC_NAME "sse4.2"
#elif defined(__aarch64__) && !defined(__ARM_BIG_ENDIAN)
#include <arm_acle.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#if defined(__ARM_FEATURE_CRC32)
#define ZC_CRC_TARGET
#else
#define ZC_CRC_TARGET __attribute__((target("+crc")))
#endif
#define ZC_CRC_8(crc, word) __crc32cd((crc), (word))
#define ZC_CRC_1(crc, byte) __crc32cb((crc), (byte))
#define ZC_CRC_NAME "armv8"
#endif

#define ZC_CRC_POLYNOMIAL 0x82F63B78u
enum { ZC_CRC_STREAM = 2048 };          /* bytes of each of the three streams */

static uint32_t zc_crc_bytes[8][256];   /* [k][b]: byte b followed by k zero bytes */
static uint32_t zc_crc_shift[4][256];   /* [k][b]: checksum b << 8k moved past ZC_CRC_STREAM zero bytes */
static int zc_crc_has_instruction;

/* Checksums here are the bare register: the complements are the caller's. */
static uint32_t zc_crc_by_table(uint32_t crc, const uint8_t *data, int64_t n)
{
    for (; n >= 8; n -= 8, data += 8) {
        crc ^= (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
        crc = zc_crc_bytes[7][crc & 0xff] ^ zc_crc_bytes[6][crc >> 8 & 0xff] ^ zc_crc_bytes[5][crc >> 16 & 0xff]
            ^ zc_crc_bytes[4][crc >> 24] ^ zc_crc_bytes[3][data[4]] ^ zc_crc_bytes[2][data[5]]
            ^ zc_crc_bytes[1][data[6]] ^ zc_crc_bytes[0][data[7]];
    }
    for (; n > 0; n--, data++) crc = crc >> 8 ^ zc_crc_bytes[0][(crc ^ *data) & 0xff];
    return crc;
}

static inline uint32_t zc_crc_moved(uint32_t crc)
{
    return zc_crc_shift[0][crc & 0xff] ^ zc_crc_shift[1][crc >> 8 & 0xff] ^ zc_crc_shift[2][crc >> 16 & 0xff]
         ^ zc_crc_shift[3][crc >> 24];
}

#ifdef ZC_CRC_NAME
static inline uint64_t zc_crc_word(const uint8_t *data)
{
    uint64_t word;
    memcpy(&word, data, 8);
    return word;
}

ZC_CRC_TARGET static uint32_t zc_crc_by_instruction(uint32_t crc, const uint8_t *data, int64_t n)
{
    while (n >= 3 * ZC_CRC_STREAM) {
        uint32_t second = 0, third = 0;
        for (int64_t i = 0; i < ZC_CRC_STREAM; i += 8) {
            crc = ZC_CRC_8(crc, zc_crc_word(data + i));
            second = ZC_CRC_8(second, zc_crc_word(data + i + ZC_CRC_STREAM));
            third = ZC_CRC_8(third, zc_crc_word(data + i + 2 * ZC_CRC_STREAM));
        }
        crc = zc_crc_moved(zc_crc_moved(crc) ^ second) ^ third;
        data += 3 * ZC_CRC_STREAM;
        n -= 3 * ZC_CRC_STREAM;
    }
    for (; n >= 8; n -= 8, data += 8) crc = ZC_CRC_8(crc, zc_crc_word(data));
    for (; n > 0; n--, data++) crc = ZC_CRC_1(crc, *data);
    return crc;
}
#endif

static inline uint32_t zc_crc32c(uint32_t crc, const uint8_t *data, int64_t n)
{
#ifdef ZC_CRC_NAME
    if (zc_crc_has_instruction) return ~zc_crc_by_instruction(~crc, data, n);
#endif
    return ~zc_crc_by_table(~crc, data, n);
}

static const char *zc_crc_init(void)
{
    static const uint8_t zeros[64];
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int i = 0; i < 8; i++) crc = crc >> 1 ^ (crc & 1 ? ZC_CRC_POLYNOMIAL : 0);
        zc_crc_bytes[0][b] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (int b = 0; b < 256; b++)
            zc_crc_bytes[k][b] = zc_crc_bytes[k - 1][b] >> 8 ^ zc_crc_bytes[0][zc_crc_bytes[k - 1][b] & 0xff];
#ifdef ZC_CRC_NAME
#if defined(__x86_64__)
    zc_crc_has_instruction = __builtin_cpu_supports("sse4.2") != 0;
#elif defined(__APPLE__)
    zc_crc_has_instruction = 1;
#elif defined(__linux__)
    zc_crc_has_instruction = (getauxval(AT_HWCAP) & (1 << 7)) != 0;     /* HWCAP_CRC32 */
#endif
    if (zc_crc_has_instruction) {
        uint32_t moved[32];
        for (int bit = 0; bit < 32; bit++) {
            uint32_t crc = (uint32_t)1 << bit;
            for (int i = 0; i < ZC_CRC_STREAM; i += 64) crc = zc_crc_by_instruction(crc, zeros, 64);
            moved[bit] = crc;
        }
        for (int k = 0; k < 4; k++)
            for (int b = 0; b < 256; b++) {
                uint32_t crc = 0;
                for (int bit = 0; bit < 8; bit++)
                    if (b >> bit & 1) crc ^= moved[8 * k + bit];
                zc_crc_shift[k][b] = crc;
            }
        return ZC_CRC_NAME;
    }
#endif
    (void)zeros;
    return "table";
}

#endif
