package usage

import "time"

// Grade says how much a number is to be believed.
type Grade string

const (
	// Exact was counted in the step that charged it.
	Exact Grade = "exact"
	// Local was admitted by the share of an instance while the store was away, or by what it leases, and counted afterwards. An instance that ends
	// before has not counted it.
	Local Grade = "local"
	// Instance was counted by an instance in its memory. One that is killed loses a second or so of it.
	Instance Grade = "instance"
)

// Window is how long the periods are that usage is reported by.
type Window string

// The windows. Minutes are kept for 48 hours. Days and months are those of UTC unless a zone is named.
const (
	Minute Window = "minute"
	Hour   Window = "hour"
	Day    Window = "day"
	Month  Window = "month"
)

// By is what there is a row for in each period.
type By string

const (
	// ByUnit has points, requests and all other units that were charged. It is the default.
	ByUnit By = "unit"
	// ByField has root fields of operations.
	ByField By = "field"
	// ByLimit has what has refused: of a limit its level and its name, such as tenant:minute, and otherwise the outcome in the word that
	// metrics carry, such as too_expensive.
	ByLimit By = "limit"
)

// Charged reports whether the store counts it in the step that charges it. Instances count the rest.
func (b By) Charged() bool { return b != ByLimit }

// Known says how much of a period is known.
type Known string

// How much is known. Nobody has collected the rest, or it was forgotten.
const (
	KnownAll  Known = "all"
	KnownPart Known = "part"
	KnownNone Known = "none"
)

// Series is usage in the order of its periods, or a page of it.
type Series struct {
	// Tenant is whose usage it is, empty for all tenants.
	Tenant string `json:"tenant,omitempty"`
	Window Window `json:"window"`
	By     By     `json:"by"`
	// Zone is the time zone of days and months.
	Zone string `json:"zone"`
	// From is when the first period began, and To when the last one ends.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Since is when counts were collected for the first time, and Collected up to when they have come. Both are zero where they never were.
	Since     time.Time `json:"since,omitzero"`
	Collected time.Time `json:"collected,omitzero"`
	// Kept is from when on there are counts by this window.
	Kept time.Time `json:"kept"`
	// Counts is what the policy of now has counted of the tenant in the step that charges: none, totals or fields. It is empty where nobody
	// knows, or where it has nothing to do with what is asked for.
	Counts string `json:"counts,omitempty"`
	// Next is where the next page begins. It is empty at the end.
	Next string `json:"next,omitempty"`
	Rows []Row  `json:"rows"`
}

// Row is what a name has in a period. A period in which nothing was counted has one row of zeros; a name without a row in a period that
// has others has nothing in it. Numbers that nobody knows, or that are not of what is asked for, are nil.
type Row struct {
	Begin time.Time `json:"begin"`
	End   time.Time `json:"end"`
	// Open says that the period is not over, or not everything collected that was counted in it: the numbers may still grow.
	Open bool `json:"open"`
	// Known says whether the numbers are all that was counted.
	Known  Known  `json:"known"`
	Tenant string `json:"tenant,omitempty"`
	// Name is that of the unit, root field or limit.
	Name  string `json:"name"`
	Grade Grade  `json:"grade"`
	// Charged is what was admitted and charged on for it later, GivenBack what of that was given back, and Net what is left of both. Net may be
	// below zero in a period in which what was charged before was given back. Calls is how often a root field was called.
	Charged   *int64 `json:"charged,omitempty"`
	GivenBack *int64 `json:"givenBack,omitempty"`
	Net       *int64 `json:"net,omitempty"`
	Calls     *int64 `json:"calls,omitempty"`
	// Refused is how many operations were refused.
	Refused *int64 `json:"refused,omitempty"`
}

// Numbers returns the numbers that rows have, in the order of [Columns].
func (r *Row) Numbers(by By) []**int64 {
	if by.Charged() {
		return []**int64{&r.Charged, &r.GivenBack, &r.Net, &r.Calls}
	}
	return []**int64{&r.Refused}
}

// Columns are the names of the numbers of rows in a table.
func Columns(by By) []string {
	if by.Charged() {
		return []string{"charged", "given_back", "net", "calls"}
	}
	return []string{"refused"}
}
