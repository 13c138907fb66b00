package mongofeed

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// general is the tier of a translation.
const general = "general"

// periods are those of limits that are numbers.
var periods = map[string]string{"second": "1s", "minute": "1m", "hour": "1h", "day": "24h"}

// translation collects what is wrong with a document, as many mistakes as somebody reads.
type translation struct{ errs []error }

const maxMistakes = 20

func (t *translation) fail(path, format string, args ...any) {
	if len(t.errs) < maxMistakes {
		t.errs = append(t.errs, fmt.Errorf("%.200q: %s", path, fmt.Sprintf(format, args...)))
	}
}

// translate returns the policy of a document as JSON. The same content gives the same bytes: the order of keys means nothing.
func (l *Limits) translate(raw bson.Raw) ([]byte, error) {
	t := &translation{}
	tier, tenants := map[string]any{}, map[string]any{}
	for name, value := range t.elements("", raw) {
		switch {
		case name == l.fields.General:
			tier["limits"] = t.limits(name, value, false)
		case name == l.fields.Custom:
			tenants = t.custom(name, value)
		case !l.ignored[name]:
			t.fail(name, "nobody knows what this field says: name it in LimitsConfig.Fields, or in Ignore if it says nothing about limits")
		}
	}
	if len(t.errs) == 0 && tier["limits"] == nil {
		t.fail(l.fields.General, "it is missing: write the limits of tenants that have no others")
	}
	if err := errors.Join(t.errs...); err != nil {
		return nil, err
	}
	document := map[string]any{"version": 1, "default": general, "tiers": map[string]any{general: tier}}
	if len(tenants) > 0 {
		document["tenants"] = tenants
	}
	// Maps are written in the order of their keys.
	return json.Marshal(document)
}

// elements returns the parts of a document. A name that comes twice is a mistake: readers differ in which of them they take.
func (t *translation) elements(path string, raw bson.Raw) map[string]bson.RawValue {
	all, err := raw.Elements()
	if err != nil {
		t.fail(path, "it is no document")
		return nil
	}
	parts := make(map[string]bson.RawValue, len(all))
	for _, element := range all {
		name := element.Key()
		if _, twice := parts[name]; twice {
			t.fail(join(path, name), "it is there twice: remove one")
		}
		parts[name] = element.Value()
	}
	return parts
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// object returns the parts of a value that has to be an object.
func (t *translation) object(path string, value bson.RawValue) map[string]bson.RawValue {
	raw, ok := value.DocumentOK()
	if !ok {
		t.fail(path, "it is of the type %v: write an object", value.Type)
		return nil
	}
	return t.elements(path, raw)
}

// custom translates the limits by key into exceptions by tenant.
func (t *translation) custom(path string, value bson.RawValue) map[string]any {
	tenants := map[string]any{}
	for key, limits := range t.object(path, value) {
		at := join(path, key)
		tenant, named := strings.CutPrefix(key, "tenant:")
		switch {
		case strings.Contains(key, ","):
			t.fail(at, "the key has several parts: a policy has custom limits by tenant only")
			continue
		case !named && strings.Contains(key, ":"):
			t.fail(at, "the key is not about a tenant: a policy has custom limits by tenant only; write \"tenant:%.80s\" if that is its name", key)
			continue
		}
		if _, twice := tenants[tenant]; twice {
			t.fail(at, "the tenant is there twice, with and without tenant: before its name: remove one")
		}
		tenants[tenant] = map[string]any{"limits": t.limits(at, limits, true)}
	}
	return tenants
}

// limits translates limits by name. Those of a tenant may remove one.
func (t *translation) limits(path string, value bson.RawValue, custom bool) map[string]any {
	limits := map[string]any{}
	for name, limit := range t.object(path, value) {
		at := join(path, name)
		if capacity, ok := integer(limit); ok {
			if periods[name] == "" {
				t.fail(at, "a number is the requests of a second, a minute, an hour or a day: write an object with capacity and per for another period")
			}
			limits[name] = map[string]any{"unit": "requests", "capacity": capacity, "per": periods[name]}
			continue
		}
		if limit.Type == bson.TypeNull && custom {
			limits[name] = nil
			continue
		}
		rule := map[string]any{}
		for key, part := range t.object(at, limit) {
			rule[key] = t.scalar(join(at, key), part)
		}
		limits[name] = rule
	}
	return limits
}

// scalar returns a text, a truth or a whole number. What keys a limit has is for the compiler of policies to say.
func (t *translation) scalar(path string, value bson.RawValue) any {
	if n, ok := integer(value); ok {
		return n
	}
	if text, ok := value.StringValueOK(); ok {
		return text
	}
	if truth, ok := value.BooleanOK(); ok {
		return truth
	}
	t.fail(path, "it is of the type %v: write a text, a whole number, true or false", value.Type)
	return nil
}

// maxExact is the largest whole number up to which a floating-point number, as the shell of MongoDB writes all numbers, is exact.
const maxExact = 1 << 53

// integer returns the value of a whole number.
func integer(value bson.RawValue) (int64, bool) {
	switch value.Type {
	case bson.TypeInt32, bson.TypeInt64:
		return value.AsInt64OK()
	case bson.TypeDouble:
		f, ok := value.DoubleOK()
		return int64(f), ok && f == math.Trunc(f) && math.Abs(f) <= maxExact
	default:
		return 0, false
	}
}
