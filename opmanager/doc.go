// Package opmanager decides which impl serves each op, calls it, and falls back when it declines or
// fails.
//
// A Manager combines a registry of impls, a policy (package oppolicy) and the current quarantines
// into a dispatch table: for each op the candidates in order, and for every other impl the reason
// why it is not a candidate. The table is immutable. Every change builds a new one and swaps it in.
//
// The policy is a stack of layers, one for each source such as a file, the environment or a service
// (PolicyStack). A layer is replaced on its own: the new policy is in force as a whole, or refused.
//
// A layer of a model binds an op once (Bind) and calls the Bound handle: one atomic load, one index
// and one indirect call. Failures are handled outside of that path by these rules:
//
//   - Arguments that do not fit the schema of the op are an error of the caller. No impl runs.
//   - When an impl declines a call (opregistry.ErrUnsupported), the next candidate is tried.
//   - When an impl fails or panics and the op only writes outputs, the next candidate is tried. An
//     impl that fails repeatedly is quarantined for a while.
//   - When an impl fails on operands that the op updates in place, the call returns an error,
//     unless the policy protects such operands with a copy or the impl reports that it has not
//     written to them (opregistry.ErrUntouched).
//   - The backward op of a family runs on the impl that its forward op ran on.
//   - Under a strict policy no other candidate is tried.
//
// Managers and Bound handles are safe for concurrent use. A call uses one table from beginning to
// end; a change affects the calls that begin after it.
//
// A call returns an *opregistry.ArgError for a wrong argument and a *CallError when no candidate
// served it. A CallError lists every attempt and every rejected impl and wraps the errors of the
// attempts. It also wraps ErrSavedState when the forward op has to run again.
package opmanager
