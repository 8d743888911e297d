// Package rows is what the families of vendors/opencl share that go through rows or elements: views
// of rows, the cut of work into groups, and launches.
//
// # Concepts
//
// Each family has a source in OpenCL C, which begins with rows.cl, and one Program for it. A kernel
// is written once for vectors of any width and groups of any size. On a CPU a group is one
// work-item that goes through rows alone, with vectors as wide as its registers; elsewhere a group
// shares each row and adds up in the order of a tree. How work is cut depends on shapes and the
// kind of device alone, so that equal operands give equal bits.
package rows
