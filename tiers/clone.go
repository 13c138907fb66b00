package tiers

import "reflect"

// clone returns a copy of a policy that shares nothing with it, so that a snapshot can be compiled from it later.
func (p Policy) clone() Policy {
	var copied Policy
	cloneInto(reflect.ValueOf(&copied).Elem(), reflect.ValueOf(p))
	return copied
}

// cloneInto copies a part of a policy, whose lists are of texts.
func cloneInto(into, from reflect.Value) {
	if from.IsZero() {
		return
	}
	switch from.Kind() {
	case reflect.Struct:
		for i := range from.NumField() {
			cloneInto(into.Field(i), from.Field(i))
		}
	case reflect.Pointer:
		into.Set(reflect.New(from.Type().Elem()))
		cloneInto(into.Elem(), from.Elem())
	case reflect.Map:
		into.Set(reflect.MakeMapWithSize(from.Type(), from.Len()))
		for entries := from.MapRange(); entries.Next(); {
			entry := reflect.New(from.Type().Elem()).Elem()
			cloneInto(entry, entries.Value())
			into.SetMapIndex(entries.Key(), entry)
		}
	case reflect.Slice:
		into.Set(reflect.AppendSlice(reflect.MakeSlice(from.Type(), 0, from.Len()), from))
	default:
		into.Set(from)
	}
}
