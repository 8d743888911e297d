package serve

// Kept returns the events that a Hub keeps.
func Kept(h *Hub) []Event {
	events, _, _ := h.since(1)
	return events
}
