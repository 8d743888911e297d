// Package softmax holds the impls of scaled and masked softmax and of their gradients.
package softmax
