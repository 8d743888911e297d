// column_sums adds up rows of partial sums, in order: out[c] = sum of sums[i * pitch + c].
KERNEL void column_sums(VEC(F32, sums), VEC(Y, out), uint rows, ulong pitch, uint cols, uint per) {
  for (uint c = (GID * per + LID) * W, end = min(cols, (GID + 1) * per * W); c < end; c += GROUP * W) {
    VF sum = 0.0f;
    for (uint r = 0; r < rows; r++)
      sum += GET(F32, AT(sums) + r * pitch + c, cols - c);
    SET(Y, AT(out) + c, sum, cols - c);
  }
}
