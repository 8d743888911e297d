package pysource

import "math/big"

// Version returns the version that a module states in literals at its top level: __version__, or
// MAJOR, MINOR and PATCH with PRE_RELEASE after them. It is empty if the module states none.
func (f *File) Version() string {
	stated := map[string]string{}
	for _, s := range f.Body {
		switch s := s.(type) {
		case *Assign:
			for _, target := range s.Targets {
				state(stated, target, s.Value)
			}
		case *AnnAssign:
			if s.Value != nil {
				state(stated, s.Target, s.Value)
			}
		}
	}
	if v := stated["__version__"]; v != "" {
		return v
	}
	if stated["MAJOR"] == "" || stated["MINOR"] == "" || stated["PATCH"] == "" {
		return ""
	}
	return stated["MAJOR"] + "." + stated["MINOR"] + "." + stated["PATCH"] + stated["PRE_RELEASE"]
}

// state records the text of an integer or a string that is assigned to a name.
func state(stated map[string]string, target, value Expr) {
	name, ok := target.(*Name)
	if !ok {
		return
	}
	delete(stated, name.ID) // a value that is computed later replaces this one and is not known
	c, ok := value.(*Constant)
	if !ok {
		return
	}
	switch v := c.Value.(type) {
	case string:
		stated[name.ID] = v
	case *big.Int:
		stated[name.ID] = v.String()
	}
}
