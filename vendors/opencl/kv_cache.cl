// Compile-time parameter: ELEMENT, an unsigned integer of the size of the elements.

// CACHED declares a [slot, position, head, element] tensor.
#define CACHED(x) BUFFER(ELEMENT, x), long x##_slot, long x##_at, long x##_head, long x##_element
#define PLACE(x, slot, at, head, element)                                                          \
  (x##_memory + x##_offset)[(slot) * x##_slot + (at) * x##_at + (head) * x##_head + (element) * x##_element]

static inline int length_of(__global const int *totals, int b) { return totals[b + 1] - totals[b]; }

// reorder moves the old tokens of the sequences to their slots. A work-item moves one element of a
// position from sequence to sequence: what a move overwrites is not read by a later one.
__kernel void reorder(CACHED(cache), BUFFER(int, table), BUFFER(int, fresh), BUFFER(int, lengths), int batch, int heads,
                      int elements, int capacity) {
  TENSOR(int, table);
  TENSOR(int, fresh);
  TENSOR(int, lengths);
  const int id = get_global_id(0), at = get_global_id(1);
  if (id >= heads * elements)
    return;
  for (int b = 0; b < batch && (b == 0 || table[b] >= table[b - 1]); b++)
    if (table[b] != b && at < length_of(lengths, b) - length_of(fresh, b))
      PLACE(cache, b, at, id / elements, id % elements) = PLACE(cache, table[b], at, id / elements, id % elements);
}

// append copies the new tokens of sequences to the cache. In a packed tensor all sequences lie in one
// batch entry.
__kernel void append(CACHED(from), CACHED(cache), BUFFER(int, table), BUFFER(int, fresh), BUFFER(int, lengths), int batch,
                     int heads, int elements, int capacity, int pages, int packed) {
  TENSOR(int, table);
  TENSOR(int, fresh);
  TENSOR(int, lengths);
  const int id = get_global_id(0), i = get_global_id(1);
  int b = get_global_id(2), step = i;
  if (id >= heads * elements)
    return;
  if (packed) {
    while (b < batch && i >= fresh[b + 1])
      b++;
    if (b == batch)
      return;
    step = i - fresh[b];
  }
  if (step >= length_of(fresh, b))
    return;
  int slot = b, at = length_of(lengths, b) - length_of(fresh, b) + step;
  if (pages) {
    slot = table[b * pages + at / capacity];
    at %= capacity;
  }
  PLACE(cache, slot, at, id / elements, id % elements) = PLACE(from, packed ? 0 : b, i, id / elements, id % elements);
}
