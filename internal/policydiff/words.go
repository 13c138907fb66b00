package policydiff

import (
	"fmt"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Limit says a limit in words.
func Limit(l *bucket.Limit) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", l.Capacity, l.Unit)
	switch kind := Window(l.Window.Kind); {
	case kind == "":
		if l.Refill != l.Capacity {
			fmt.Fprintf(&b, ", %d", l.Refill)
		}
		fmt.Fprintf(&b, " per %s", tiers.Period(l.Period))
	case l.Period > 0:
		fmt.Fprintf(&b, " per %s, %s window", tiers.Period(l.Period), kind)
	default:
		fmt.Fprintf(&b, " per %s of the calendar", kind)
	}
	return b.String()
}

// Window names a kind of windows. It is empty for a token bucket.
func Window(kind bucket.WindowKind) string {
	if kind == bucket.TokenBucket {
		return ""
	}
	return kind.String()
}

// Owner names an owner of budgets. Names come from outside, and are as they were written.
func Owner(owner bucket.Owner) string {
	if owner.Level == bucket.Tenant {
		return "tenant"
	}
	name := owner.Level.String() + " " + owner.Name
	if user, ok := strings.CutPrefix(owner.Part, tiers.UserPart("")); ok {
		name += " of user " + user
	} else if owner.Part != "" {
		name += " " + owner.Part
	}
	return name
}

// written says limits in words as a document has them.
func written(limits map[string]*tiers.Limit) string {
	var texts []string
	for _, name := range sorted(limits) {
		l := limits[name]
		if l == nil {
			continue
		}
		unit := l.Unit
		if unit == "" {
			unit = string(bucket.Points)
		}
		text := fmt.Sprintf("%s: %d %s", name, l.Capacity, unit)
		if l.Refill != 0 && l.Refill != l.Capacity {
			text += fmt.Sprintf(", %d", l.Refill)
		}
		text += " per " + l.Per.String()
		for _, more := range [...]string{l.Window, l.Mode} {
			if more != "" {
				text += ", " + more
			}
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}
