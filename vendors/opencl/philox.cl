// Random numbers, with W defined: internal/random says which number belongs to which element.
#if W == 4
#define PHILOX_LANES (VU)(0, 1, 2, 3)
#elif W == 8
#define PHILOX_LANES (VU)(0, 1, 2, 3, 4, 5, 6, 7)
#else
#define PHILOX_LANES (VU)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#endif

// at_least compares the four words of Philox4x32-10 of the counters counter to counter + W − 1 with
// limit. Bit i of a lane says whether word i is at least limit.
static inline VU at_least(ulong counter, ulong seed, uint limit) {
  uint2 key = (uint2)((uint)seed, (uint)(seed >> 32));
  VU x = (uint)counter + PHILOX_LANES, y = (uint)(counter >> 32), z = 0, w = 0;
  y = select(y, y + 1, x < PHILOX_LANES);
  for (int round = 0; round < 10; round++) {
    JOIN(ulong, W) p = JOIN(convert_ulong, W)(x) * 0xD2511F53ul, q = JOIN(convert_ulong, W)(z) * 0xCD9E8D57ul;
    x = JOIN(convert_uint, W)(q >> 32) ^ y ^ key.x;
    z = JOIN(convert_uint, W)(p >> 32) ^ w ^ key.y;
    y = JOIN(convert_uint, W)(q);
    w = JOIN(convert_uint, W)(p);
    key += (uint2)(0x9E3779B9u, 0xBB67AE85u);
  }
  return select((VU)0, (VU)1, x >= limit) | select((VU)0, (VU)2, y >= limit) |
         select((VU)0, (VU)4, z >= limit) | select((VU)0, (VU)8, w >= limit);
}
