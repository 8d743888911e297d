// Package attention has attention with its gradient and what surrounds it: the layouts of Q, K and
// V, the cache of keys and values, the parts of context parallelism, and the gated delta net.
//
// Package ops says what holds for every op of the catalogue.
package attention
