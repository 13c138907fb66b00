// Package previewreport is what a preview of a policy has found: who would newly be refused. The control plane says it, and the command reads it.
package previewreport

import (
	"fmt"
	"strconv"
	"time"
)

// Shares of tenants and users.
const (
	// HaltAbove is the share of tenants or users newly refused above which a policy reaches far.
	HaltAbove = 0.05
	// RemarkBelow is the share below which a change is so small that it may not do what it is for.
	RemarkBelow = 0.001
)

// Report is what a policy would newly refuse.
type Report struct {
	// From and To are the times of the first and the last operation that was recorded, zero if none was.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	// Chunks is how many were read, and Unreadable how many could not be.
	Chunks     int `json:"chunks"`
	Unreadable int `json:"unreadable,omitempty"`
	// Share is which share of all tenants the records are about, 0 to 1, drawn by a hash of their names: each in it with everything
	// that it has asked for. LeftOut is how many tenants are not judged because one of them has asked for more than fits.
	Share   float64 `json:"share"`
	LeftOut int     `json:"leftOut,omitempty"`
	// Mixed is how many operations are judged by the mean price of several, and without their users, or by a part of their root fields.
	Mixed int64 `json:"mixed,omitempty"`
	// Total is about all tenants that were judged. Its name and tier are empty.
	Total Row `json:"total"`
	// Tenants and Users are how many of them are newly refused at least once.
	Tenants Group `json:"tenants"`
	Users   Group `json:"users"`
	// LargestShare is the largest part of what one tenant has asked for that is newly refused, 0 to 1.
	LargestShare float64 `json:"largestShare"`
	// Rows are the tenants that either policy refuses something, most newly refused first, then by name. Unlisted is how many more
	// there are.
	Rows     []Row `json:"rows,omitempty"`
	Unlisted int   `json:"unlisted,omitempty"`
	// NotJudged are limits of the policies of which records do not say what was asked of them. They refuse nothing here.
	NotJudged []string `json:"notJudged,omitempty"`
}

// Row is what a tenant has asked for, and how much of it is refused.
type Row struct {
	Tenant string `json:"tenant,omitempty"`
	// Tier is that of the last operation under the policy that may follow.
	Tier       string `json:"tier,omitempty"`
	Operations int64  `json:"operations"`
	// Live is how many were refused when they ran, Before how many the policy of now refuses, and After how many the other one.
	// Live and Before differ where budgets were not full at first.
	Live   int64 `json:"live,omitempty"`
	Before int64 `json:"before,omitempty"`
	After  int64 `json:"after,omitempty"`
	// NewlyRefused is how many the other one refuses and that of now does not.
	NewlyRefused int64 `json:"newlyRefused,omitempty"`
	// By says what newly refuses how many, most first, at most eight.
	By []Cause `json:"by,omitempty"`
}

// Cause is what newly refuses.
type Cause struct {
	// Level says whose limit it is, and Owner which operation rule's. Both are empty for what is no limit: blocked and maxCost.
	Level string `json:"level,omitempty"`
	Owner string `json:"owner,omitempty"`
	Limit string `json:"limit"`
	N     int64  `json:"n"`
}

// String names the limit, with whose it is unless it is that of tenants, and how many operations it refuses.
func (c *Cause) String() string {
	name := c.Limit
	switch {
	case c.Owner != "":
		name = c.Owner + "/" + name
	case c.Level != "" && c.Level != "tenant":
		name = c.Level + "/" + name
	}
	return name + " " + strconv.FormatInt(c.N, 10)
}

// Group says how many of those who were seen are newly refused at least once.
type Group struct {
	Seen         int `json:"seen"`
	NewlyRefused int `json:"newlyRefused"`
	// Share is the part of those seen, and Low and High are between which that of all of them lies with a probability of 95 %.
	// Where everybody is recorded they are Share.
	Share float64 `json:"share"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Halts says that the policy reaches far: more tenants or users are newly refused than [HaltAbove].
func (r *Report) Halts() bool { return r.Tenants.Share > HaltAbove || r.Users.Share > HaltAbove }

// Remark is what is to be said about the shares, empty if nothing is.
func (r *Report) Remark() string {
	switch {
	case r.Tenants.Seen == 0:
		return "nothing was recorded: it is not known who would be refused"
	case r.Halts():
		return fmt.Sprintf("more than %g %% of tenants or users are newly refused", 100*HaltAbove)
	case r.Tenants.High > HaltAbove || r.Users.High > HaltAbove:
		return fmt.Sprintf("the sample is too small to rule out that more than %g %% are newly refused", 100*HaltAbove)
	case r.Tenants.Share < RemarkBelow && r.Users.Share < RemarkBelow:
		return fmt.Sprintf("less than %g %% of tenants and users are newly refused: is that what the change is for?", 100*RemarkBelow)
	default:
		return ""
	}
}
