// Package tuning chooses impls by measurement.
//
// # Concepts
//
// A Profile is an opmanager.Tap that keeps one call of each op and signature
// (opregistry.Call.Signature: dtypes, shapes, layouts, options) that training makes, and counts the
// others. Measure runs each of these calls on every impl that may serve it, by turns, and returns a
// File: for each call the fastest impl, with the ratio to the impl that would serve it otherwise
// and the interval of that ratio. A difference counts when the whole interval of the median ratio
// is at least MinRatio; otherwise the choice stays, and the File says that it is not clear. Confirm
// drops the choices with which whole steps are not clearly faster.
//
// A File belongs to a machine: CPU, number of threads, the versions of primus and of all sources of
// impls. On another one it is refused with a *MachineError.
//
// File.Tuning turns it into what a policy uses: the fastest impl of each op over all of its calls,
// weighted by their number, and the calls for which another impl is faster. The ops of a family are
// chosen together.
//
// # Concurrency
//
// A Profile may see calls from several goroutines. The rest belongs to one goroutine.
package tuning
