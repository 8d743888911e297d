// Package rankops brings the dispatch of several processes together in the program that has started
// them. A Reporter in each process sends what its op manager counts and decides; the Collector of
// the program receives it, and sends the policy of the run whenever it changes. The
// socket between them is on one machine.
package rankops
