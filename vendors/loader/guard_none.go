//go:build !((linux || darwin) && (amd64 || arm64) && !android && !nopurego)

package loader

// Guard would call C functions; this build has none.
type Guard struct{}

// Call panics: there is no Library whose functions could be called.
func (g *Guard) Call(fn, a0, a1 uintptr) (uintptr, Change) { return g.Call4(fn, a0, a1, 0, 0) }

// Call4 panics, as Call does.
func (*Guard) Call4(_, _, _, _, _ uintptr) (uintptr, Change) {
	panic("BUG: loader: Call without a library")
}

func guarded(f func()) Change {
	f()
	return Change{}
}

const simdRegister = ""

var controlFields []controlField
