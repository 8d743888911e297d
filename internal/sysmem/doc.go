// Package sysmem reports how much memory a process may use on this machine, so that a program can
// refuse before it uses more than there is.
//
// On Linux it reads /proc/meminfo and the limits of control groups, of version 1 and 2, up to the
// root of their hierarchy; swap space counts where it may be used. On the BSDs, macOS and Windows
// it is the memory of the machine.
package sysmem
