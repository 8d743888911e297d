// Package learn finds the merges of byte pair encoding: again and again the most frequent pair of
// adjacent symbols in a set of words becomes a symbol of its own (Sennrich et al. 2016,
// arXiv:1508.07909).
package learn
