package projection

// Network is what connects ranks, as far as the time of collectives depends on it.
type Network struct {
	Name      string  `json:"name"`
	Latency   float64 `json:"latency_seconds"`  // of a message without content
	Bandwidth float64 `json:"bytes_per_second"` // of a rank, in one direction
}

// Networks returns common networks with latencies and bandwidths that programs reach on them.
func Networks() []Network {
	return []Network{
		{"10 Gb/s Ethernet", 30e-6, 1.1e9},
		{"25 Gb/s Ethernet", 20e-6, 2.8e9},
		{"100 Gb/s RoCE", 4e-6, 11e9},
		{"200 Gb/s InfiniBand", 2e-6, 23e9},
		{"400 Gb/s InfiniBand", 2e-6, 46e9},
	}
}

// AllReduce returns the seconds in which a ring of ranks adds up some messages with these bytes in
// total:
//
//	messages · 2 · (ranks − 1) · latency + 2 · (ranks − 1) / ranks · bytes / bandwidth
//
// The second term is that of the exchange of gradients in [Plan.Performance].
func (n Network) AllReduce(bytes float64, messages, ranks int) float64 {
	if ranks < 2 {
		return 0
	}
	return float64(messages)*2*float64(ranks-1)*n.Latency + 2*share(ranks)*bytes/n.Bandwidth
}

// MeasuredNetwork returns the network on which two ranks add up an empty message and one with some
// bytes in these times.
func MeasuredNetwork(name string, empty, bytes, seconds float64) Network {
	return Network{Name: name, Latency: empty / 2, Bandwidth: bytes / (seconds - empty)}
}
