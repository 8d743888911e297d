package plugin

// Flags returns the flags of an op of the plugin, of package abi; 0 when it has no
// such impl.
func (p *Plugin) Flags(op, implID string) uint32 {
	for _, e := range p.desc.ops {
		if e.op == op && e.implID == implID {
			return e.flags
		}
	}
	return 0
}
