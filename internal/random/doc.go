// Package random has the random numbers of ops. Every random op takes a seed and an offset and gets
// its bits from here, so that impls agree bit for bit.
package random
