// Package chart draws line charts, bars and boxes as PNG: two axes with labelled ticks and a grid,
// series in data coordinates, and a legend in the upper right corner.
//
// It imports nothing of the module, so that every package may use it, and links one font.
package chart
