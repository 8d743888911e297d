// Package opmanager decides which impl serves each op, calls it, and falls back
// soundly when it declines or fails.
//
// # Concepts
//
// A Policy ranks impls: an order of tokens (kinds, vendors, single impls) for
// all ops or for one, vendors allowed and denied, strictness. A Manager builds
// from a registry snapshot, a policy and the open quarantines an immutable
// dispatch table: for each op the candidates in order, and for every other impl
// the reason why it is none. Any change builds a new table and swaps it in.
//
// A layer binds an op once (Bind) and calls the Bound handle: one atomic load,
// one index, one indirect call. What goes wrong in that call is handled by the
// rules below, off the hot path:
//
//   - arguments that do not fit the op's schema are the caller's error; no impl
//     runs and nothing falls back.
//   - an impl that declines (opregistry.ErrUnsupported) is passed over.
//   - an impl that fails or panics is passed over if the op only wrote outputs;
//     repeated failures put it into quarantine for a while.
//   - an impl that fails on operands that are updated in place ends the call
//     with an error, unless the policy protects them with a copy or the impl says
//     that it has not touched them (opregistry.ErrUntouched).
//   - the backward op of a family runs on the impl that its forward op ran on.
//   - a strict policy passes nothing over.
//
// # Concurrency
//
// Managers and Bound handles are safe for concurrent use. Calls see one table
// from beginning to end; a change is seen by the next call.
//
// # Errors
//
// *PolicyError is a policy that cannot be read. *opregistry.ArgError is a wrong
// argument. *CallError is a call that no candidate served, with every attempt
// and every rejected impl; it wraps the attempts, so that errors.Is and errors.As
// reach them, and ErrSavedState when the forward op has to run again.
package opmanager
