// Package patch is the engine that changes a training backend at fixed points of a run: it selects,
// orders, applies and accounts for patches, and knows none itself.
//
// # Concepts
//
// A Patch is a value: an id, when it applies (backend, phase, versions, condition), what kind of
// change it makes and a handler. A Set holds the patches of a program; there is no global
// registration. Set.Plan evaluates every condition before any handler runs and says for each
// candidate whether it runs and why not; Set.Run applies what was selected, by ascending priority,
// ties in the order: patches for exactly this backend and phase, for any backend, for any phase,
// for both; and within these in the order of the Set.
//
// What can be replaced is declared: a Point is a typed function slot of a trainer, such as the
// learning rate schedule. Replace and Wrap put a layer on it; the original stays, layers are listed
// and can be undone one by one. A handler may also change the arguments of the backend and the
// environment, through the Context it gets. When a handler fails, what it had changed by these
// three ways is taken back.
//
// # Concurrency
//
// A Set is immutable. A Context, its Points and a run belong to one goroutine; handlers are called
// from it.
//
// # Errors
//
// *DuplicateError when two patches have one id. A condition or a version pattern that cannot be
// evaluated stops the run with an *Error that names the patch; a failing handler does so only with
// Options.StopOnError and is in the Report otherwise. A handler that lacks something it needs wraps
// ErrMissing.
package patch
