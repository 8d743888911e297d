package collective

import "github.com/primus-fl/primus/opregistry"

// Ops returns the handles of the ops of this package.
func Ops() []opregistry.Handle {
	return []opregistry.Handle{
		AllReduce, Reduce, ReduceScatter, AllGather, Broadcast, AllToAll, Barrier,
	}
}
