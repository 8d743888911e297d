// Package serve is the HTTP service of a run: what dispatch has decided and why, the policy and how
// to change it, the progress of training, live events, metrics, and a page that shows all of it.
//
// # Concepts
//
// A Server answers from one op manager. Anybody may read. A request that changes state needs a
// token, counts against a rate limit and is logged with the name of the token. The policy that the
// service is given is the highest layer of the policy stack of the manager.
//
// Hub is a listener of the manager and Board an observer of training. Both keep a bounded amount
// and never wait for a reader, so a slow client cannot slow down a step.
//
// # Concurrency
//
// Everything here is safe for concurrent use. A Server has goroutines between Start and Close.
//
// # Errors
//
// Requests are answered with problem details (RFC 9457). Check reports settings that would open the
// service to strangers.
package serve
