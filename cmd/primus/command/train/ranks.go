package train

import (
	goruntime "runtime"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
)

// ranks is the place of this process in a job whose ranks train in processes like this one. A
// launcher of Python frameworks has no such place.
type ranks struct{ backend.Distributed }

// placeOf returns the place of this process. What the environment has wrong ends the run later,
// before its first step.
func placeOf(module *config.Module) ranks {
	d, err := backend.ReadDistributed(backend.ProcessEnviron())
	if err != nil || module.Framework != native.Framework {
		d = backend.Distributed{WorldSize: 1, LocalWorldSize: 1}
	}
	return ranks{d}
}

// follows reports whether another process, the first rank, reports for this one.
func (r ranks) follows() bool { return r.Rank > 0 }

// threads returns how many threads ops have when none are asked for: 0, which is one for each CPU
// that this process may use, or its share of them.
func (r ranks) threads(asked uint) int {
	if asked > 0 || r.LocalWorldSize == 1 {
		return int(asked)
	}
	return max(1, goruntime.NumCPU()/r.LocalWorldSize)
}
