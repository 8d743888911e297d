// Package pyreader reads Python source without Python: the patches of a checkout of Primus, and the
// versions, fields and numbers that modules of frameworks state.
//
// Open imports the packages of patches of every backend as Python would, and lists each
// registration as a Record: when it applies and what its handler changes. It finds the changes by
// evaluating the handler with symbolic values for everything from libraries. Nothing of a checkout
// runs. A Checkout belongs to one goroutine.
//
// Open fails if there is no checkout. Files that cannot be read are in Checkout.Faults. What only
// Python could know of a registration is in Record.Unknown.
package pyreader
