package plugin

// Flags returns the flags of an impl of the plugin, constants of package abi, and 0 if there is no
// such impl.
func (p *Plugin) Flags(op, implID string) uint32 {
	for _, e := range p.desc.ops {
		if e.op == op && e.implID == implID {
			return e.flags
		}
	}
	return 0
}
