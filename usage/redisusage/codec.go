package redisusage

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

const (
	// maxName is how long a member of a set or a field of a hash is at most: a tenant, a number, and what parts them.
	maxName = 1024 + 32
	// maxValue is how long what is told of a tenant and a minute is, and maxRows how many rows that has.
	maxValue = 1 << 20
	maxRows  = 1024

	secondsOfMinute = 60
	minutesOfHour   = 60
)

// rows are what is told of a tenant in a minute.
type rows struct {
	Decisions []decision `json:"d,omitempty"`
	Reached   []crossing `json:"r,omitempty"`
}

type decision struct {
	By          usage.Dimension `json:"b,omitempty"`
	Name        string          `json:"n,omitempty"`
	Admitted    int64           `json:"a,omitempty"`
	Refused     int64           `json:"r,omitempty"`
	WouldRefuse int64           `json:"w,omitempty"`
	Points      int64           `json:"p,omitempty"`
}

type crossing struct {
	Level     string `json:"v,omitempty"`
	Owner     string `json:"o,omitempty"`
	Limit     string `json:"l,omitempty"`
	Threshold int    `json:"t,omitempty"`
	Times     int64  `json:"n,omitempty"`
}

var errUnreadable = errors.New("redisusage: it cannot be read")

// encode returns the rows as they are kept.
func (r *rows) encode() []byte {
	// They have no value that JSON has not.
	text, _ := json.Marshal(r)
	return text
}

// decode adds what is kept of a tenant and a minute to a report. Anybody may have written it.
func decode(text, tenant string, minute time.Time, to *usage.Report) error {
	var read rows
	if json.Unmarshal([]byte(text), &read) != nil || len(read.Decisions) > maxRows || len(read.Reached) > maxRows {
		return errUnreadable
	}
	for i := range read.Decisions {
		d := &read.Decisions[i]
		if d.By > usage.ByLimit || len(d.Name) > maxName || min(d.Admitted, d.Refused, d.WouldRefuse, d.Points) < 0 {
			return errUnreadable
		}
	}
	for i := range read.Reached {
		if c := &read.Reached[i]; max(len(c.Level), len(c.Owner), len(c.Limit)) > maxName || c.Threshold < 0 || c.Times < 0 {
			return errUnreadable
		}
	}
	for _, d := range read.Decisions {
		to.Decisions = append(to.Decisions, usage.Decisions{
			Tenant: tenant, Minute: minute, By: d.By, Name: d.Name,
			Numbers: usage.Numbers{Admitted: d.Admitted, Refused: d.Refused, WouldRefuse: d.WouldRefuse, Points: d.Points},
		})
	}
	for _, c := range read.Reached {
		to.Reached = append(to.Reached, usage.Reached{
			Tenant: tenant, Minute: minute, Level: c.Level, Owner: c.Owner, Limit: c.Limit, Threshold: c.Threshold, Times: c.Times,
		})
	}
	return nil
}

// gradeLetters are those of the grades in members.
const gradeLetters = "el"

// member is how an hour of a tenant is told.
func member(c *usage.Counted) string {
	hour := c.Hour.Unix() / secondsOfMinute / minutesOfHour
	return gradeLetters[c.Grade:c.Grade+1] + strconv.FormatInt(hour, 10) + ":" + c.Tenant
}

// readMember is what a member says.
func readMember(text string) (c usage.Counted, ok bool) {
	if text == "" {
		return c, false
	}
	grade := strings.IndexByte(gradeLetters, text[0])
	hour, tenant, ok := cutNumber(text[1:])
	if !ok || grade < 0 {
		return c, false
	}
	return usage.Counted{Tenant: tenant, Hour: time.Unix(hour*secondsOfMinute*minutesOfHour, 0).UTC(), Grade: bucket.UsageGrade(grade)}, true
}

// field is under which the rows of a tenant and a minute stand.
func field(tenant string, minute time.Time) string {
	return strconv.FormatInt(minute.Unix()/secondsOfMinute, 10) + ":" + tenant
}

// readField is what a field says.
func readField(text string) (tenant string, minute time.Time, ok bool) {
	n, tenant, ok := cutNumber(text)
	return tenant, time.Unix(n*secondsOfMinute, 0).UTC(), ok
}

// cutNumber cuts a number before a colon, of at most 32 bits.
func cutNumber(text string) (n int64, rest string, ok bool) {
	const decimal, bits = 10, 32
	digits, rest, ok := strings.Cut(text, ":")
	if !ok {
		return 0, "", false
	}
	number, err := strconv.ParseUint(digits, decimal, bits)
	return int64(number), rest, err == nil
}
