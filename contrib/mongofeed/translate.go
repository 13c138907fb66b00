package mongofeed

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
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
	tier, keys := map[string]any{}, customs{}
	elements := t.elements("", raw)
	common := map[string]any{}
	if value, found := elements[l.fields.General]; found {
		common = t.limits(l.fields.General, value, false)
		tier["limits"] = common
	}
	for name, value := range elements {
		switch {
		case name == l.fields.General:
		case name == l.fields.Custom:
			keys = l.custom(t, name, value, common)
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
	if len(keys.tenants) > 0 {
		document["tenants"] = keys.tenants
	}
	if len(keys.all) > 0 {
		document["custom"] = keys.all
	}
	if len(l.parameters) > 0 {
		document["parameters"] = l.parameters
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

// customs are the custom limits of a document: the exceptions of tenants, and those of keys without a tenant.
type customs struct{ tenants, all map[string]any }

// tenant returns the exception of a tenant.
func (c *customs) tenant(name string) map[string]any {
	x, _ := c.tenants[name].(map[string]any)
	if x == nil {
		x = map[string]any{}
		c.tenants[name] = x
	}
	return x
}

// custom translates the limits by key: that of a tenant alone into an exception, and any other into a custom limit with budgets of its own, in
// the place of the general ones. What such a key does not say, the general limits do.
func (l *Limits) custom(t *translation, path string, value bson.RawValue, common map[string]any) customs {
	c := customs{tenants: map[string]any{}, all: map[string]any{}}
	for spelled, limits := range t.object(path, value) {
		at := join(path, spelled)
		if !strings.ContainsAny(spelled, ":,") {
			if c.set(c.tenant(spelled), "limits", t.limits(at, limits, true)) {
				continue
			}
			t.fail(at, "the tenant is there twice, with and without tenant: before its name: remove one")
			continue
		}
		key, err := tiers.ParseKey(spelled)
		if err != nil {
			t.fail(at, "%v", err)
			continue
		}
		l.named(t, at, key)
		tenant, rest := key.Value("tenant"), key.Without("tenant")
		if len(rest.Names()) == 0 {
			if !c.set(c.tenant(tenant), "limits", t.limits(at, limits, true)) {
				t.fail(at, "the tenant is there twice, with and without tenant: before its name: remove one")
			}
			continue
		}
		rule := map[string]any{"instead": true, "limits": merged(common, t.limits(at, limits, true))}
		under := c.all
		if tenant != "" {
			x := c.tenant(tenant)
			if x["custom"] == nil {
				x["custom"] = map[string]any{}
			}
			under, _ = x["custom"].(map[string]any)
		}
		if !c.set(under, rest.String(), rule) {
			t.fail(at, "the key is there twice, in two spellings: remove one")
		}
	}
	return c
}

// set returns false if something is there already.
func (*customs) set(into map[string]any, name string, value any) bool {
	_, twice := into[name]
	into[name] = value
	return !twice
}

// named reports the parts of a key of which nobody knows where a request has them.
func (l *Limits) named(t *translation, at string, key tiers.Key) {
	for _, name := range key.Names() {
		switch _, known := l.parameters[name]; {
		case known, name == "tenant", name == "team", name == "user", name == "tier":
		default:
			t.fail(at, "nobody knows where a request has %q: say it in LimitsConfig.Parameters; write \"tenant:%.80s\" if this is the name of a tenant", name, key)
		}
	}
}

// merged returns the general limits with those of a key, where null removes one.
func merged(common, custom map[string]any) map[string]any {
	all := maps.Clone(common)
	for name, limit := range custom {
		if all[name] = limit; limit == nil {
			delete(all, name)
		}
	}
	return all
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
