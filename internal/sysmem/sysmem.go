package sysmem

import (
	"fmt"
	"math"
)

// Limit is the most memory that a process can have.
type Limit struct {
	Bytes  uint64
	Source string // what sets the limit, such as "/proc/meminfo"
}

// Text writes a number of bytes with a binary unit and three digits, four from 1000 to 1023.
func Text(bytes float64) string {
	const units = "KMGTPEZY"
	if bytes < 1024 || math.IsNaN(bytes) {
		return fmt.Sprintf("%.0f bytes", bytes)
	}
	i := -1
	for bytes >= 1023.5 && i < len(units)-1 {
		bytes /= 1024
		i++
	}
	switch {
	case bytes < 9.995:
		return fmt.Sprintf("%.2f %ciB", bytes, units[i])
	case bytes < 99.95:
		return fmt.Sprintf("%.1f %ciB", bytes, units[i])
	}
	return fmt.Sprintf("%.0f %ciB", bytes, units[i])
}
