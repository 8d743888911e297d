// Package peak measures what the CPU can do at most: fused multiply-adds in
// registers and a sum of arrays in memory. Efficiency is a share of these.
package peak

import (
	"time"

	"github.com/primus-fl/primus/internal/simd"
	"github.com/primus-fl/primus/opregistry"
)

const (
	// The fastest burst of all counts: one that nothing else disturbed. There is a
	// pause behind each group, for a busy machine to turn to something else.
	groups = 20
	pause  = 5 * time.Millisecond

	flopsBursts, bandwidthBursts = 25, 2 // in a group

	// partsPerWorker keep all workers busy to the end when one starts late.
	partsPerWorker = 8
)

// FLOPS returns the f32 operations a second, of which a fused multiply-add is two,
// that all workers of a pool reach together with the widest vectors of this CPU.
// It is 0 where this package has no kernel: anywhere but on amd64 with FMA. It takes
// about 0.3 s.
func FLOPS(pool opregistry.Pool) float64 {
	kernel, perRound := fmaKernel()
	if kernel == nil {
		return 0
	}
	const rounds = 10_000
	parts := partsPerWorker * pool.Workers()
	took := fastest(flopsBursts, pool, parts, task(func(int) { kernel(rounds) }))
	return float64(parts) * rounds * perRound / took.Seconds()
}

// sumElements are the elements of an array of Bandwidth: 64 MiB, more than caches
// of a few cores hold.
const sumElements = 16 << 20

// Bandwidth returns the bytes a second that all workers of a pool move together
// when they add two arrays of f32 into a third, counted as two reads and one write.
// It takes about a second and 192 MiB.
func Bandwidth(pool opregistry.Pool) float64 {
	parts := partsPerWorker * pool.Workers()
	a, b, sum := make([]float32, sumElements), make([]float32, sumElements), make([]float32, sumElements)
	for i := range a {
		a[i], b[i] = 1, 2
	}
	took := fastest(bandwidthBursts, pool, parts, task(func(part int) {
		lo, hi := part*sumElements/parts, (part+1)*sumElements/parts
		simd.Add(sum[lo:hi], a[lo:hi], b[lo:hi])
	}))
	return 3 * 4 * sumElements / took.Seconds()
}

// task is a function as a task of a pool.
type task func(part int)

// Do runs a part.
func (t task) Do(part int) { t(part) }

// fastest returns the shortest time that a pool takes for the parts, of groups of bursts.
func fastest(bursts int, pool opregistry.Pool, parts int, t task) time.Duration {
	best := time.Duration(1<<63 - 1)
	for range groups {
		for range bursts {
			begin := time.Now()
			pool.Run(parts, t)
			best = min(best, time.Since(begin))
		}
		time.Sleep(pause)
	}
	return max(best, 1)
}

var _ opregistry.Task = task(nil)
