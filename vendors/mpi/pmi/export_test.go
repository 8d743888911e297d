package pmi

var Proof = proof
