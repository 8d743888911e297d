// Package patches has the patches of the native backend, each switched by a parameter of the
// module.
//
// They use the extension points of package native and nothing else of it, so they show what a patch
// of another module can do.
//
// A patch keeps its state in what it wraps, so that two runs share nothing.
package patches
