package preflight

import (
	"fmt"
	"net"
	"net/netip"
	"path"
	"slices"
	"strings"
)

// network checks interfaces, names and the ports of RDMA devices.
func (r *Report) network(m Machine, l Limits, at Place) {
	interfaces, err := net.Interfaces()
	if err != nil {
		r.add(Network, "interfaces", Warn, err.Error(), "the system does not list its interfaces")
	}
	up := 0
	var names []string
	for _, i := range interfaces {
		names = append(names, i.Name)
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		addresses, _ := i.Addrs()
		var texts []string
		for _, a := range addresses {
			texts = append(texts, a.String())
		}
		if len(texts) == 0 {
			continue
		}
		up++
		value := fmt.Sprintf("%s, MTU %d", strings.Join(texts, " "), i.MTU)
		if speed := m.read(path.Join("sys/class/net", i.Name, "speed")); speed != "" && !strings.HasPrefix(speed, "-") {
			value += ", " + speed + " Mbit/s"
		}
		r.ok(Network, "interface "+i.Name, "%s", value)
	}
	r.add(Network, "interfaces", grade(up == 0 && at.World > 1, Fail), fmt.Sprintf("%d up, besides the loopback", up), "ranks on other nodes cannot be reached: bring an interface up")
	for _, variable := range []string{"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"} {
		r.interfaceVariable(m, variable, names)
	}
	if addresses, err := net.LookupHost(r.Host); err != nil {
		r.add(Network, "own name", grade(at.World > 1, Warn), fmt.Sprintf("%s is not resolved", r.Host), "add the host to DNS or /etc/hosts")
	} else {
		loopback := !slices.ContainsFunc(addresses, func(text string) bool {
			a, err := netip.ParseAddr(text)
			return err == nil && !a.IsLoopback()
		})
		r.add(Network, "own name", grade(loopback && at.World > 1, Warn), fmt.Sprintf("%s is %s", r.Host, strings.Join(addresses, ", ")), "the name of the host leads to itself only: frameworks may announce that address to other nodes")
	}
	if at.World > 1 {
		if _, err := net.LookupHost(at.Address); err != nil {
			r.add(Network, "MASTER_ADDR", Fail, fmt.Sprintf("%s is not resolved", at.Address), "name a host that every node resolves, or its address")
		}
	}
	r.rdma(m, l)
}

// interfaceVariable checks that a variable names existing interfaces. NCCL reads a list of
// prefixes, of exact names after = and of excluded ones after ^.
func (r *Report) interfaceVariable(m Machine, variable string, names []string) {
	text := m.Getenv(variable)
	if text == "" || strings.HasPrefix(text, "^") {
		return
	}
	list, exact := strings.CutPrefix(text, "=")
	for want := range strings.SplitSeq(list, ",") {
		if slices.ContainsFunc(names, func(name string) bool { return name == want || !exact && strings.HasPrefix(name, want) }) {
			r.ok(Network, variable, "%s", text)
			return
		}
	}
	r.add(Network, variable, Fail, text, fmt.Sprintf("no such interface: there are %s", strings.Join(names, ", ")))
}

// rdma checks the ports of InfiniBand and RoCE devices.
func (r *Report) rdma(m Machine, l Limits) {
	const root = "sys/class/infiniband"
	choice := l.RDMAPorts
	if choice == "" {
		choice = m.Getenv("NCCL_IB_HCA")
	}
	active := 0
	for _, device := range m.list(root) {
		for _, port := range m.list(path.Join(root, device, "ports")) {
			at := path.Join(root, device, "ports", port)
			state, physical := after(m.read(path.Join(at, "state"))), after(m.read(path.Join(at, "phys_state")))
			value := fmt.Sprintf("%s, %s, %s, %s", state, physical, m.read(path.Join(at, "rate")), m.read(path.Join(at, "link_layer")))
			name := "RDMA " + device + ":" + port
			switch {
			case !chosen(choice, device, port):
				r.ok(Network, name, "%s, not used", value)
			case choice == "" && (physical == "Disabled" || physical == "Sleep"):
				r.ok(Network, name, "%s, switched off", value)
			case state != "ACTIVE":
				r.add(Network, name, Fail, value, "the port is not active: check cable, switch and driver, or leave it out with NCCL_IB_HCA")
			default:
				active++
				r.ok(Network, name, "%s", value)
			}
		}
	}
	r.Facts["RDMA ports"] = fmt.Sprintf("%d active", active)
	if l.ExpectedRDMA > 0 {
		r.add(Network, "RDMA ports", grade(active != l.ExpectedRDMA, Fail), r.Facts["RDMA ports"], fmt.Sprintf("%d are expected", l.ExpectedRDMA))
	}
}

// after returns what follows the number in "4: ACTIVE".
func after(text string) string {
	if _, rest, ok := strings.Cut(text, ": "); ok {
		return rest
	}
	return text
}

// chosen reports whether a list in the syntax of NCCL_IB_HCA selects a port: device or device:port
// with commas, as prefixes or, after =, exactly; ^ excludes them.
func chosen(list, device, port string) bool {
	if list == "" {
		return true
	}
	list, excluded := strings.CutPrefix(list, "^")
	list, exact := strings.CutPrefix(list, "=")
	matches := slices.ContainsFunc(strings.Split(list, ","), func(want string) bool {
		name, number, hasPort := strings.Cut(want, ":")
		if hasPort && number != port {
			return false
		}
		return name == device || !exact && name != "" && strings.HasPrefix(device, name)
	})
	return matches != excluded
}
