// Package race tells the race detector about memory that assembly or C is about to touch, which it
// cannot see. Without the detector its functions do nothing and cost nothing.
package race
