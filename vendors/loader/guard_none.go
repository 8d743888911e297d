//go:build !((linux || darwin) && (amd64 || arm64) && !android && !nopurego)

package loader

// Guard would call C functions; this build has none.
type Guard struct{}

// Call panics: there is no Library whose functions could be called.
func (*Guard) Call(_, _, _ uintptr) (uintptr, Change) { panic("BUG: loader: Call without a library") }

func guarded(f func()) Change {
	f()
	return Change{}
}

const simdRegister = ""

var controlFields []controlField
