// Package fleet makes the runs of a cluster known to each other's operators through etcd, and gives
// all of them one policy.
//
// # Concepts
//
// An Agent belongs to a run. It keeps a Member, the record of the run, under a lease, so that the
// record goes when the run does; it follows the policy of the fleet, a policy file that is kept
// under one key, and answers questions about the dispatch of its run. A Client is for those who
// look at the fleet and change its policy. Discovery offers the members to Prometheus as targets.
//
// Everything lies below a prefix, which is the name of the fleet:
//
//	PREFIX/policy              the policy, as the YAML of a policy file; its number is the revision of the key in etcd
//	PREFIX/runs/ID             a Member as JSON, under the lease of the run
//	PREFIX/questions/ID        a Question as JSON, under the lease of the one who asks
//	PREFIX/answers/QUESTION/ID what a run answered, under the lease of the question
//
// A run never depends on etcd. While etcd does not answer, the policy in force stays in force, and
// the Agent tries again with growing pauses; what it finds then is what counts. A policy that
// cannot be used changes nothing and is reported in the Member.
//
// # Concurrency
//
// Agents and Clients are safe for concurrent use. An Agent has one goroutine, which Close ends and
// waits for. Settings.Apply is called from that goroutine only.
//
// # Errors
//
// *ConflictError says that a policy was not replaced because it is not the one that was expected.
// Bad settings are found before anything connects. Errors of etcd keep errors.Is and say which
// endpoints were asked. An Agent does not return what goes wrong later, but logs it once for each
// change and shows it in its State.
package fleet
