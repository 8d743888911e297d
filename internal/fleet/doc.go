// Package fleet registers the runs of a cluster in etcd and gives all of them one policy.
//
// # Concepts
//
// An Agent belongs to a run. It keeps a Member, the record of the run, under a lease, so that the
// record disappears with the run. It follows the policy of the fleet, a policy file under one key,
// and answers questions about the dispatch of its run. A Client lists the runs and changes the
// policy. Discovery offers the members to Prometheus as targets.
//
// Everything lies below a prefix, which is the name of the fleet:
//
//	PREFIX/policy              the policy, as the YAML of a policy file; its number is the revision of the key in etcd
//	PREFIX/runs/ID             a Member as JSON, under the lease of the run
//	PREFIX/status/ID           a Member with its Status as JSON, for a day
//	PREFIX/questions/ID        a Question as JSON, under the lease of the one who asks
//	PREFIX/answers/QUESTION/ID what a run answered, under the lease of the question
//
// A run never depends on etcd. While etcd does not answer, the run keeps its policy, and the Agent
// tries again with growing pauses; then the run takes the policy that the fleet has. A policy that
// cannot be used changes nothing and is reported in the Member.
//
// # Concurrency
//
// Agents and Clients are safe for concurrent use. An Agent has one goroutine, which Close ends and
// waits for. Settings.Apply is called from that goroutine only.
//
// # Errors
//
// *ConflictError reports that a policy was not replaced because it is not the expected one. Bad
// settings are found before anything connects. Errors of etcd can be matched with errors.Is and
// name the endpoints. Later faults of an Agent are not returned; they are logged once for each
// change and shown in its State.
package fleet
