// Package procgroup starts processes in groups, which a signal reaches with all that they have
// started. Systems other than Unix have no groups: there only the processes themselves are ended.
package procgroup
