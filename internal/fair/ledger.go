package fair

// Ledger counts work by client. The zero value is ready.
type Ledger struct {
	accounts map[string]*account
}

type account struct {
	used int
	open int // what the client has here
}

// maxAbsent is how many clients that have left are remembered.
const maxAbsent = 1024

// Enter says that a client has one more thing that waits or is done.
func (l *Ledger) Enter(client string) {
	if l.accounts == nil {
		l.accounts = map[string]*account{}
	}
	a := l.accounts[client]
	if a == nil {
		a = &account{}
	}
	if a.open == 0 {
		a.used = max(a.used, l.least())
		l.accounts[client] = a
	}
	a.open++
}

// Leave says that a client has one thing less. When nobody has any, all begin anew.
func (l *Ledger) Leave(client string) {
	l.accounts[client].open--
	least, here := l.least(), 0
	for _, a := range l.accounts {
		if a.open > 0 {
			here++
		}
	}
	for name, a := range l.accounts {
		if a.open == 0 && (here == 0 || a.used <= least || len(l.accounts)-here > maxAbsent) {
			delete(l.accounts, name)
		}
	}
}

// Charge adds work to the count of a client that has entered.
func (l *Ledger) Charge(client string, work int) { l.accounts[client].used += work }

// Used returns the count of a client that has entered.
func (l *Ledger) Used(client string) int { return l.accounts[client].used }

// least returns the smallest count of a client that is here, 0 without one.
func (l *Ledger) least() int {
	least, found := 0, false
	for _, a := range l.accounts {
		if a.open > 0 && (!found || a.used < least) {
			least, found = a.used, true
		}
	}
	return least
}
