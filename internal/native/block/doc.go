// Package block has the parts of a decoder: embedding, norm, attention, MLP, mixture of experts,
// dropout, adapters and the layer that is made of them. Each has its weights, its activations and
// its ops, bound to the manager's views for its layer and for forward and backward.
//
// A Builder makes the blocks and gives them memory. A Run is one forward or backward pass over
// them: it keeps the first error, which begins with the part of the model ("layer 3 attention").
package block
