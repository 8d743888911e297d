// Package patch changes a training backend at fixed points of a run: it selects, orders and applies
// patches and reports what they did. It contains no patches.
//
// # Concepts
//
// A Patch is a value: an id, when it applies (backend, phase, versions, condition), the style of
// its change and a handler. A Set holds the patches of a program; there is no global registration.
// Set.Plan evaluates every condition before any handler runs, and says of each candidate whether it
// runs and if not, why. Set.Run applies the selected patches by ascending priority. Of patches with
// one priority, those for exactly this backend and phase come first, then those for any backend,
// for any phase, and for both; within each of these the order of the Set decides.
//
// A trainer declares what can be replaced: a Point is a function of the trainer, such as the
// learning rate schedule. Replace and Wrap put a layer on it. The original stays; layers are listed
// and can be undone one by one. A handler may also change the arguments of the backend and the
// environment through its Context. When a handler fails, its changes of points, arguments and
// environment are undone.
//
// # Concurrency
//
// A Set is immutable. A Context, its Points and a run belong to one goroutine; handlers are called
// from it.
//
// # Errors
//
// Two patches with one id are a *DuplicateError. A condition or a version pattern that cannot be
// evaluated stops the run with an *Error that names the patch. A handler that fails does so only
// with Options.StopOnError; otherwise it is listed in the Report. A handler that lacks something it
// needs returns an error that wraps ErrMissing.
package patch
