// Package softmax has the scaled softmax of attention scores with its masks, and its gradient.
//
// Package ops says what holds for every op of the catalogue.
package softmax
