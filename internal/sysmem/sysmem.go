package sysmem

import "fmt"

// Limit is the most memory that a process can have.
type Limit struct {
	Bytes  uint64
	Source string // what sets the limit, such as "/proc/meminfo"
}

// Text writes a number of bytes with a decimal unit and three digits.
func Text(bytes float64) string {
	const units = "kMGTPEZY"
	if bytes < 1000 {
		return fmt.Sprintf("%.0f bytes", bytes)
	}
	i := -1
	for bytes >= 999.5 && i < len(units)-1 {
		bytes /= 1000
		i++
	}
	switch {
	case bytes < 9.995:
		return fmt.Sprintf("%.2f %cB", bytes, units[i])
	case bytes < 99.95:
		return fmt.Sprintf("%.1f %cB", bytes, units[i])
	}
	return fmt.Sprintf("%.0f %cB", bytes, units[i])
}
