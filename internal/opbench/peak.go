package opbench

import (
	"math"
	"time"

	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/opregistry"
)

const (
	// partsPerWorker keeps all workers busy to the end when one starts late.
	partsPerWorker = 8

	// flopsTime is how long each worker repeats flopsRounds.
	flopsTime   = 20 * time.Millisecond
	flopsRounds = 20_000

	// After each group of bursts comes a pause, so that a busy machine can do something else.
	groups, bursts = 10, 2
	pause          = 5 * time.Millisecond
)

// PeakFLOPS returns the f32 operations per second, of which a fused multiply-add is two, that the
// workers of a pool reach at the same time with the widest vectors of this CPU: the sum of their
// means over 20 ms, which include the effect of other load. It is 0 where this package has no
// kernel: everywhere except on amd64 with FMA.
func PeakFLOPS(pool opregistry.Pool) float64 {
	kernel, perRound := fmaKernel()
	if kernel == nil {
		return 0
	}
	rates := make([]float64, pool.Workers())
	pool.Run(len(rates), task(func(worker int) {
		start, took, bursts := time.Now(), time.Duration(0), 0
		for ; took < flopsTime; took = time.Since(start) {
			kernel(flopsRounds)
			bursts++
		}
		rates[worker] = float64(bursts) * flopsRounds * perRound / took.Seconds()
	}))
	sum := 0.
	for _, r := range rates {
		sum += r
	}
	return sum
}

// sumElements is the number of elements of an array of PeakBandwidth: 64 MiB, more than the caches
// of a few cores hold.
const sumElements = 16 << 20

// PeakBandwidth returns the bytes per second that all workers of a pool move together when they add
// two arrays of f32 into a third, counted as two reads and one write: the fastest of several runs.
// It takes about a second and 192 MiB.
func PeakBandwidth(pool opregistry.Pool) float64 {
	parts := partsPerWorker * pool.Workers()
	a, b, sum := make([]float32, sumElements), make([]float32, sumElements), make([]float32, sumElements)
	for i := range a {
		a[i], b[i] = 1, 2
	}
	add := task(func(part int) {
		lo, hi := part*sumElements/parts, (part+1)*sumElements/parts
		vector.Add(sum[lo:hi], a[lo:hi], b[lo:hi])
	})
	best := time.Duration(math.MaxInt64)
	for range groups {
		for range bursts {
			begin := time.Now()
			pool.Run(parts, add)
			best = min(best, time.Since(begin))
		}
		time.Sleep(pause)
	}
	return 3 * 4 * sumElements / max(best, 1).Seconds()
}

// task is a function as a task of a pool.
type task func(part int)

// Do runs a part.
func (t task) Do(part int) { t(part) }

var _ opregistry.Task = task(nil)
