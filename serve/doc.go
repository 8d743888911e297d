// Package serve is the HTTP service of a run: what dispatch has decided and why, the policy and how
// to change it, the progress of training, live events, metrics, and a page that shows all of it.
//
// # Concepts
//
// A Server answers from one op manager. Reading needs no proof of who asks; whatever changes state
// needs a token, is counted against a rate and is logged with the name of the token. Control is the
// one place through which the policy of a running manager changes: the policy of files, environment
// and flags below, the document of the service on top.
//
// Hub is a listener of the manager and Board an observer of training; both keep a bounded amount
// and never wait for anybody who reads, so that a slow client cannot slow down a step.
//
// # Concurrency
//
// Everything here is safe for concurrent use. A Server has goroutines between Start and Close.
//
// # Errors
//
// Requests are answered with problem details (RFC 9457). Check reports settings that would open the
// service to strangers. *ConflictError is a policy that was changed since it was read.
package serve
