package pysource

import "reflect"

// Walk calls visit for a node and then for every node below it, in the order of the fields. Where
// visit returns false the nodes below are left out.
func Walk(n Node, visit func(Node) bool) {
	if n == nil || !visit(n) {
		return
	}
	walkFields(reflect.ValueOf(n).Elem(), visit)
}

func walkFields(s reflect.Value, visit func(Node) bool) {
	for i := range s.NumField() {
		walkValue(s.Field(i), visit)
	}
}

func walkValue(v reflect.Value, visit func(Node) bool) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			walkValue(v.Index(i), visit)
		}
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return
		}
		if v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct || !v.CanInterface() {
			return
		}
		if n, ok := v.Interface().(Node); ok {
			Walk(n, visit)
		} else {
			walkFields(v.Elem(), visit)
		}
	}
}
