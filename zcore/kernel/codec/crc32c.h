/* CRC-32C by a table, or by the instruction of x86-64 (SSE4.2) or of ARMv8.
 *
 * The sum is the remainder of the message, as a polynomial over GF(2), divided by
 * P = x^32 + x^28 + x^27 + x^26 + x^25 + x^23 + x^22 + x^20 + x^19 + x^18 + x^14 + x^13 + x^11 + x^10 + x^9 + x^8 + x^6
 * + 1. The bits of every byte, and of the sum, are in reflected order (the highest power is the lowest bit). The
 * functions here compute the bare remainder; the caller inverts it before and after, as the definition demands.
 */
#ifndef ZCORE_CRC32C_H
#define ZCORE_CRC32C_H

#include <stdint.h>
#include <string.h>

#define ZC_CRC32C_POLYNOMIAL 0x82f63b78u    /* P without x^32, reflected */

typedef uint32_t (*zc_crc32c_function)(uint32_t crc, const uint8_t *data, int64_t n);

/* Row k: the remainder of a byte that k more bytes follow. Filled once, by zc_crc32c_choose. */
static uint32_t zc_crc32c_rows[8][256];

static uint32_t zc_crc32c_by_table(uint32_t crc, const uint8_t *data, int64_t n)
{
    for (; n >= 8; n -= 8, data += 8)
        crc = zc_crc32c_rows[7][data[0] ^ (crc & 0xff)] ^ zc_crc32c_rows[6][data[1] ^ (crc >> 8 & 0xff)]
            ^ zc_crc32c_rows[5][data[2] ^ (crc >> 16 & 0xff)] ^ zc_crc32c_rows[4][data[3] ^ crc >> 24]
            ^ zc_crc32c_rows[3][data[4]] ^ zc_crc32c_rows[2][data[5]] ^ zc_crc32c_rows[1][data[6]]
            ^ zc_crc32c_rows[0][data[7]];
    for (; n > 0; n--, data++)
        crc = zc_crc32c_rows[0][*data ^ (crc & 0xff)] ^ crc >> 8;
    return crc;
}

#if defined(__x86_64__)

#include <immintrin.h>

#define ZC_CRC32C_TARGET __attribute__((target("sse4.2")))
#define ZC_CRC32C_STREAMS __attribute__((target("sse4.2,pclmul")))

ZC_CRC32C_TARGET static inline uint64_t zc_crc32c_word(uint64_t crc, uint64_t word) { return _mm_crc32_u64(crc, word); }
ZC_CRC32C_TARGET static inline uint32_t zc_crc32c_byte(uint32_t crc, uint8_t byte) { return _mm_crc32_u8(crc, byte); }

ZC_CRC32C_STREAMS static inline uint64_t zc_crc32c_product(uint64_t a, uint64_t b)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)a), _mm_cvtsi64_si128((int64_t)b), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

#if defined(__linux__)
#include <sys/auxv.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#define ZC_CRC32C_TARGET
#define ZC_CRC32C_STREAMS

/* Assembly, because compilers differ in how they offer instructions to a file that is built for plain ARMv8. */
static inline uint64_t zc_crc32c_word(uint64_t crc, uint64_t word)
{
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
    return crc;
}

static inline uint32_t zc_crc32c_byte(uint32_t crc, uint8_t byte)
{
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)byte));
    return crc;
}

static inline uint64_t zc_crc32c_product(uint64_t a, uint64_t b)
{
    typedef uint64_t pair __attribute__((vector_size(16)));
    pair product = {a, 0}, factor = {b, 0};
    __asm__(".arch_extension aes\n\tpmull %0.1q, %0.1d, %1.1d" : "+w"(product) : "w"(factor));
    return product[0];
}

static int zc_has_armv8(const char *name, unsigned long bit)
{
#if defined(__linux__)
    (void)name;
    return (getauxval(AT_HWCAP) & bit) != 0;
#elif defined(__APPLE__)
    int value = 0;
    size_t size = sizeof value;
    (void)bit;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value;
#else
    return 0;
#endif
}

#endif

#ifdef ZC_CRC32C_TARGET

/* The instruction takes 3 cycles, and one can start per cycle, so three streams are summed side by side. */
enum { ZC_CRC32C_LONG = 4096, ZC_CRC32C_SHORT = 128 };

/* Multiplying a remainder by these appends 2 and 1 streams of zeros to the message. */
static uint32_t zc_crc32c_skip_long[2], zc_crc32c_skip_short[2];

/* a * b mod P of reflected polynomials: bit 31 is 1, bit 30 is x. */
static uint32_t zc_crc32c_multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
        if (a & bit)
            product ^= b;
        b = b >> 1 ^ (b & 1 ? ZC_CRC32C_POLYNOMIAL : 0);
    }
    return product;
}

/* x^n mod P */
static uint32_t zc_crc32c_power(uint64_t n)
{
    uint32_t result = 1u << 31, square = 1u << 30;
    for (; n; n >>= 1) {
        if (n & 1)
            result = zc_crc32c_multiply(result, square);
        square = zc_crc32c_multiply(square, square);
    }
    return result;
}

ZC_CRC32C_TARGET static uint32_t zc_crc32c_one_stream(uint32_t crc, const uint8_t *data, int64_t n)
{
    uint64_t sum = crc, word;
    for (; n >= 8; n -= 8, data += 8) {
        memcpy(&word, data, 8);
        sum = zc_crc32c_word(sum, word);
    }
    crc = (uint32_t)sum;
    for (; n > 0; n--, data++)
        crc = zc_crc32c_byte(crc, *data);
    return crc;
}

/* crc * skip * x^33 mod P. The carry-less product of two reflected words is one bit too high in 64 bits, and the
 * instruction that reduces it multiplies by x^32; zc_crc32c_streams leaves both factors out of `skip`. */
ZC_CRC32C_STREAMS static inline uint32_t zc_crc32c_move(uint64_t crc, uint32_t skip)
{
    return (uint32_t)zc_crc32c_word(0, zc_crc32c_product(crc, skip));
}

ZC_CRC32C_STREAMS static uint32_t zc_crc32c_three_streams(uint32_t crc, const uint8_t *data, int64_t n)
{
    while (n >= 3 * ZC_CRC32C_SHORT) {
        const int is_long = n >= 3 * ZC_CRC32C_LONG;
        const int64_t length = is_long ? ZC_CRC32C_LONG : ZC_CRC32C_SHORT;
        const uint32_t *skip = is_long ? zc_crc32c_skip_long : zc_crc32c_skip_short;
        uint64_t a = crc, b = 0, c = 0, word;
        for (int64_t i = 0; i < length; i += 8) {
            if (is_long && i % 64 == 0) {
                /* The hardware prefetcher does not handle three streams at once. */
                __builtin_prefetch(data + 3 * ZC_CRC32C_LONG + i);
                __builtin_prefetch(data + 4 * ZC_CRC32C_LONG + i);
                __builtin_prefetch(data + 5 * ZC_CRC32C_LONG + i);
            }
            memcpy(&word, data + i, 8);
            a = zc_crc32c_word(a, word);
            memcpy(&word, data + length + i, 8);
            b = zc_crc32c_word(b, word);
            memcpy(&word, data + 2 * length + i, 8);
            c = zc_crc32c_word(c, word);
        }
        crc = zc_crc32c_move(a, skip[0]) ^ zc_crc32c_move(b, skip[1]) ^ (uint32_t)c;
        data += 3 * length;
        n -= 3 * length;
    }
    return zc_crc32c_one_stream(crc, data, n);
}

/* Returns the function for a CPU that has the instruction, and maybe the product. */
static zc_crc32c_function zc_crc32c_streams(int has_product)
{
    if (!has_product)
        return zc_crc32c_one_stream;
    for (int stretches = 1; stretches <= 2; stretches++) {
        zc_crc32c_skip_long[2 - stretches] = zc_crc32c_power(8 * ZC_CRC32C_LONG * stretches - 33);
        zc_crc32c_skip_short[2 - stretches] = zc_crc32c_power(8 * ZC_CRC32C_SHORT * stretches - 33);
    }
    return zc_crc32c_three_streams;
}

#endif

/* Fills the tables, and returns the fastest function for this CPU and its name. */
static zc_crc32c_function zc_crc32c_choose(const char **name)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? ZC_CRC32C_POLYNOMIAL : 0);
        zc_crc32c_rows[0][byte] = crc;
    }
    for (int row = 1; row < 8; row++)
        for (int byte = 0; byte < 256; byte++) {
            const uint32_t before = zc_crc32c_rows[row - 1][byte];
            zc_crc32c_rows[row][byte] = zc_crc32c_rows[0][before & 0xff] ^ before >> 8;
        }
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("sse4.2")) {
        *name = "sse4.2";
        return zc_crc32c_streams(__builtin_cpu_supports("pclmul") != 0);
    }
#elif defined(ZC_CRC32C_TARGET)
    if (zc_has_armv8("hw.optional.armv8_crc32", 1 << 7)) {             /* HWCAP_CRC32 */
        *name = "armv8";
        return zc_crc32c_streams(zc_has_armv8("hw.optional.arm.FEAT_PMULL", 1 << 4));    /* HWCAP_PMULL */
    }
#endif
    *name = "table";
    return zc_crc32c_by_table;
}

#endif
