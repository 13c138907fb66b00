package policies

import (
	"fmt"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/internal/policydiff"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const explainHelp = `
Usage: gqlratelimit policy explain -tenant T [-team M] [-user U] [-operation O] [flags]

Says what holds for a tenant, of its operations, and for the team and the user that are named, and
where in the policy each of it stands. Where a Redis is given, what the directory has of the tenant
holds too, and its override records are listed, and who leases parts of its limits and of the backstop.

Example:

    gqlratelimit policy explain -policy policy.yaml -tenant acme -user jo
`

// explainedJSON is the JSON of explain.
type explainedJSON struct {
	Version   int                  `json:"version"`
	Policy    string               `json:"policy"`
	Revision  uint64               `json:"revision,omitempty"`
	Author    string               `json:"author,omitempty"`
	Reason    string               `json:"reason,omitempty"`
	Tenant    string               `json:"tenant"`
	Tier      string               `json:"tier"`
	From      placesJSON           `json:"from"`
	Mode      string               `json:"mode"`
	FailMode  string               `json:"failMode"`
	Blocked   bool                 `json:"blocked,omitempty"`
	Unlimited bool                 `json:"unlimited,omitempty"`
	Throttle  string               `json:"throttle,omitempty"`
	Record    string               `json:"record,omitempty"`
	MaxCosts  []maxCostJSON        `json:"maxCosts,omitempty"`
	Backstop  []explainedLimit     `json:"backstop,omitempty"`
	Limits    []explainedLimit     `json:"limits"`
	Overrides *[]session.Record    `json:"overrides,omitempty"`
	Leases    []session.LeasesJSON `json:"leases,omitempty"`
	records   []bucket.Override
	leases    session.Leases
}

// placesJSON are places in the policy.
type placesJSON struct {
	Tier     string   `json:"tier,omitempty"`
	Rule     []string `json:"rule,omitempty"`
	Line     int      `json:"line,omitempty"`
	Mode     string   `json:"mode,omitempty"`
	FailMode string   `json:"failMode,omitempty"`
}

type maxCostJSON struct {
	Points int64      `json:"points"`
	Mode   string     `json:"mode"`
	From   placesJSON `json:"from"`
}

type explainedLimit struct {
	session.LimitJSON

	FailMode string     `json:"failMode"`
	From     placesJSON `json:"from"`

	owner bucket.Owner
	limit bucket.Limit
}

func explain(c cli.Console, args []string) error {
	var in session.Flags
	flags := c.NewFlags("policy explain", explainHelp)
	in.Register(flags)
	if err := cli.ParseAlone(flags, args); err != nil {
		return err
	}
	if _, err := in.Scope.Owner(); err != nil {
		return err
	}
	var (
		h       *session.Holding
		records []bucket.Override
		leases  session.Leases
	)
	if in.Redis.Given(c) {
		s, err := in.Open(c)
		if err != nil {
			return err
		}
		defer s.Close()
		if records, err = s.Overrides(in.Scope.Tenant); err != nil {
			return err
		}
		h = s.Holding
		if leases, err = s.Leases(h); err != nil {
			return err
		}
	} else {
		held, err := in.Policy.Read(c, nil)
		if err != nil {
			return err
		}
		if h, err = held.Resolve(in.Scope, nil); err != nil {
			return err
		}
		for _, note := range h.Notes() {
			fmt.Fprintln(c.Stderr, "note:", note)
		}
	}
	out := explained(h, in.Redis.Given(c), records)
	out.Leases, out.leases = leases.JSON(), leases
	if in.JSON {
		return c.WriteJSON(out)
	}
	writeExplained(c, h, &out)
	return nil
}

func explained(h *session.Holding, live bool, records []bucket.Override) explainedJSON {
	from := h.Rules.Provenance(h.Subject)
	out := explainedJSON{
		Version: cli.FormatVersion, Policy: h.Policy.From, Tenant: h.Scope.Tenant, Tier: h.Rules.Tier, From: places(from),
		Mode: h.Rules.Mode.String(), FailMode: h.Rules.FailMode.String(), Blocked: h.Rules.Blocked, Unlimited: h.Rules.Unlimited,
		Limits: []explainedLimit{}, records: records,
	}
	if r := h.Policy.Revision; r != nil {
		out.Revision, out.Author, out.Reason = r.Number, r.Author, r.Reason
	}
	if !h.Rules.Throttle.Usual() {
		out.Throttle = h.Rules.Throttle.String()
	}
	if h.Record != nil {
		out.Record = h.Record.Document()
	}
	selection := h.Selection()
	for _, most := range []struct {
		points int64
		mode   bucket.Mode
	}{{h.Rules.MaxCost.Enforce, bucket.Enforce}, {h.Rules.MaxCost.Warn, bucket.Warn}, {h.Rules.MaxCost.Shadow, bucket.Shadow}} {
		if p, ok := h.Rules.MaxCostProvenance(h.Subject, selection, most.points, most.mode); ok {
			out.MaxCosts = append(out.MaxCosts, maxCostJSON{most.points, most.mode.String(), places(p)})
		}
	}
	out.Backstop = backstop(h)
	buckets := h.Rules.Buckets
	if h.Scope.Operation == "" {
		buckets = h.All()
	}
	for _, b := range buckets {
		for _, limit := range b.Limits.All() {
			e := explainedLimit{LimitJSON: session.NewLimitJSON(b.Owner, &limit), FailMode: limit.FailMode.String(), owner: b.Owner, limit: limit}
			if p, ok := h.Rules.LimitProvenance(h.Subject, b.Owner, limit.Name); ok {
				e.From = places(p)
			}
			out.Limits = append(out.Limits, e)
		}
	}
	if live {
		list := []session.Record{}
		for i := range records {
			list = append(list, session.NewRecord(h.Scope.Tenant, &records[i]))
		}
		out.Overrides = &list
	}
	return out
}

// backstop are the limits over all tenants that its operations are charged to first.
func backstop(h *session.Holding) []explainedLimit {
	buckets := h.Rules.Backstop
	if h.Scope.Operation == "" {
		buckets = policydiff.Backstop(h.Policy.Snapshot, &h.Policy.Written)
	}
	var all []explainedLimit
	for _, b := range buckets {
		at := "backstop."
		if b.Owner.Level != bucket.Tenant {
			at += "operations." + b.Owner.Name + "."
		}
		for _, limit := range b.Limits.All() {
			all = append(all, explainedLimit{
				LimitJSON: session.NewLimitJSON(b.Owner, &limit), FailMode: limit.FailMode.String(),
				From: placesJSON{Rule: []string{at + "limits." + limit.Name}}, owner: b.Owner, limit: limit,
			})
		}
	}
	return all
}

func places(p tiers.Provenance) placesJSON {
	return placesJSON{Tier: p.Tier, Rule: p.Rule, Line: p.Line, Mode: p.Mode, FailMode: p.FailMode}
}

// says names places that define a rule: the last one holds.
func (p *placesJSON) says() string {
	text := strings.Join(p.Rule, ", then ")
	if p.Line > 0 {
		text += fmt.Sprintf(", line %d", p.Line)
	}
	return text
}

func writeExplained(c cli.Console, h *session.Holding, out *explainedJSON) {
	session.WriteHeading(c, h)
	if r := h.Policy.Revision; r != nil && r.Author != "" {
		fmt.Fprintln(c.Stdout, cli.Plain(fmt.Sprintf("Published by %s: %s", r.Author, r.Reason)))
	}
	if out.Throttle != "" {
		fmt.Fprintln(c.Stdout, "While servers are overloaded: "+out.Throttle)
	}
	if out.Record != "" {
		fmt.Fprintln(c.Stdout, cli.Plain("Its record in the directory: "+out.Record))
	}
	for _, most := range out.MaxCosts {
		fmt.Fprintf(c.Stdout, "An operation costs at most %d points (%s): %s\n", most.Points, most.Mode, most.From.says())
	}
	for i := range out.Backstop {
		l, of := &out.Backstop[i], ""
		if l.owner.Level != bucket.Tenant {
			of = " for " + session.OwnerName(l.owner)
		}
		fmt.Fprintf(c.Stdout, "All tenants together have %s%s (%s), which is taken first: %s\n", session.LimitText(&l.limit), of, l.Mode, l.From.says())
	}
	rows := [][]string{{"OWNER", "LIMIT", "ALLOWS", "MODE", "BY", "FAIL MODE", "FROM"}}
	for i := range out.Limits {
		l := &out.Limits[i]
		rows = append(rows, []string{
			session.OwnerName(l.owner), l.Limit, session.LimitText(&l.limit), l.Mode, session.Place(l.From.Mode), l.FailMode, l.From.says(),
		})
	}
	if len(rows) > 1 {
		cli.WriteTable(c.Stdout, rows)
	}
	switch {
	case out.Overrides == nil:
	case len(out.records) == 0:
		fmt.Fprintln(c.Stdout, "It has no override records.")
	default:
		fmt.Fprintln(c.Stdout, "\nOverride records beat what stands above:")
		session.WriteRecords(c, out.records)
	}
	session.WriteLeases(c, &out.leases)
}
