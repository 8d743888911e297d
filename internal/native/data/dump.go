package data

import (
	"context"
	"fmt"
	"io"

	"github.com/primus-fl/primus/internal/safetensors"
	"github.com/primus-fl/primus/tensor"
)

// DumpBatches replaces the file at path with the count global batches that follow the Sampler's
// position, so that a run can be replayed elsewhere: one tensor "batches" of i32 [count,
// globalBatch, seq_length+1]. The metadata names the position of the first sample, the seed and the
// fingerprint of the Blend. The Sampler's position is as before; one batch at a time is in memory.
// If ctx ends, the file is unchanged.
func DumpBatches(ctx context.Context, path string, s *Sampler, count, globalBatch int) error {
	if count < 1 || globalBatch < 1 {
		return fmt.Errorf("data: dump_batches: given %d batches of %d samples, want 1 or more of each", count, globalBatch)
	}
	width := s.blend.seq + 1
	replay := *s
	e, err := safetensors.Stream("batches", tensor.I32, []int{count, globalBatch, width}, func(w io.Writer) error {
		batch := make([]int32, globalBatch*width)
		for range count {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := replay.Batch(batch); err != nil {
				return err
			}
			if _, err := w.Write(int32Bytes(batch)); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = safetensors.WriteFile(path, []safetensors.Entry{e}, map[string]string{
			"position":    fmt.Sprint(s.position),
			"seed":        fmt.Sprint(s.seed),
			"fingerprint": s.blend.Fingerprint(),
		})
	}
	if err != nil {
		return fmt.Errorf("data: dump_batches: %w", err)
	}
	return nil
}
